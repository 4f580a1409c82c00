"""Hub ids: what is one, what is asked for, what is refused on the way."""

import socket
import time
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
from huggingface_hub import HfApi

from generation import hub
from generation.errors import ModelError
from generation.progress import silent


@pytest.mark.parametrize("source", ["owner/name", "owner/na.me-1_x", "owner/name@abc123"])
def test_hub_ids(source):
    assert hub.is_hub_id(source)


@pytest.mark.parametrize(
    "source", ["name", "/owner/name", "./name", "a/b/c", "../name", "owner/file.gguf", "~/x", ""]
)
def test_not_hub_ids(source):
    assert not hub.is_hub_id(source)


@pytest.fixture
def downloads(monkeypatch, tmp_path):
    """Stands for a hub that has every model: records what is asked for and gives a folder."""
    asked = []

    def snapshot(repository, *, revision, allow_patterns, local_files_only):
        asked.append((repository, revision, tuple(allow_patterns), local_files_only))
        return str(tmp_path)

    monkeypatch.setattr(hub, "snapshot_download", snapshot)
    monkeypatch.setattr(
        HfApi, "model_info", lambda *_, revision, timeout: SimpleNamespace(sha=f"sha-of-{revision}")
    )
    return asked


def test_small_files_come_first_and_no_code_is_asked_for(downloads, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert hub.fetch_from_hub("owner/name@abc", silent) == tmp_path
    assert downloads == [
        ("owner/name", "sha-of-abc", ("*.json", "*.txt", "*.jinja", "tokenizer.model"), False),
        ("owner/name", "sha-of-abc", ("*.safetensors",), False),
    ]


def test_a_model_that_wants_code_is_refused_before_its_weights(downloads, tmp_path):
    (tmp_path / "config.json").write_text('{"auto_map": {}}')
    with pytest.raises(ModelError, match="asks for code"):
        hub.fetch_from_hub("owner/name", silent)
    assert len(downloads) == 1


def test_without_a_hub_what_is_kept_is_used(downloads, tmp_path, monkeypatch):
    def unreachable(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.setattr(HfApi, "model_info", unreachable)
    (tmp_path / "config.json").write_text("{}")
    assert hub.fetch_from_hub("owner/name@abc", silent) == tmp_path
    assert {asked[1:2] + asked[3:] for asked in downloads} == {("abc", True)}


def test_offline_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match=r"offline.*give a folder or a \.gguf file") as caught:
        hub.fetch_from_hub("owner/name", silent)
    assert "\n" not in str(caught.value)


def test_a_hub_that_never_answers_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub, "SECONDS_TO_ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(hub, "HfApi", lambda: HfApi(endpoint=address))
        started = time.monotonic()
        with pytest.raises(ModelError, match="timed out"):
            hub.fetch_from_hub("owner/name", silent)
        assert time.monotonic() - started < 5
