"""Hub ids: what is one, what is asked for, what is refused on the way."""

import huggingface_hub.constants
import pytest

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
    """Stands for the hub: records what is asked for and gives a folder."""
    asked = []

    def snapshot(repository, *, revision, allow_patterns, etag_timeout):
        asked.append((repository, revision, tuple(allow_patterns)))
        return str(tmp_path)

    monkeypatch.setattr(hub, "snapshot_download", snapshot)
    return asked


def test_small_files_come_first_and_no_code_is_asked_for(downloads, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert hub.fetch_from_hub("owner/name@abc", silent) == tmp_path
    assert [patterns for *_, patterns in downloads] == [
        tuple(hub.SMALL_FILES),
        tuple(hub.WEIGHTS),
    ]
    assert {asked[:2] for asked in downloads} == {("owner/name", "abc")}


def test_a_model_that_wants_code_is_refused_before_its_weights(downloads, tmp_path):
    (tmp_path / "config.json").write_text('{"auto_map": {}}')
    with pytest.raises(ModelError, match="asks for code"):
        hub.fetch_from_hub("owner/name", silent)
    assert len(downloads) == 1


def test_offline_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match=r"give a folder or a \.gguf file") as caught:
        hub.fetch_from_hub("owner/name", silent)
    assert "\n" not in str(caught.value)
