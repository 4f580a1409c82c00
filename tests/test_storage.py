"""Files kept whole, hashes remembered, one writer at a time."""

import hashlib
import multiprocessing
import os
import signal

import pytest

from generation import storage


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSBOX_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_cache_is_below_the_home_that_is_set(home):
    assert storage.cache_dir() == home / "cache"


def test_a_hash_is_remembered_until_the_file_changes(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert storage.file_sha256(path) == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(storage, "sha256_of", lambda *_: pytest.fail("the file was read again"))
        assert storage.file_sha256(path) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"two")
    assert storage.file_sha256(path) == hashlib.sha256(b"two").hexdigest()


def test_a_damaged_stamp_only_costs_time(tmp_path, home):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    storage.file_sha256(path)
    for junk in (b"", b"[]", b"{}", b"\xff"):
        for stamp in (home / "cache" / "checksums").iterdir():
            stamp.write_bytes(junk)
        assert storage.file_sha256(path) == hashlib.sha256(b"one").hexdigest()


def test_an_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    storage.write_atomically(path, b"old")

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        storage.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_published_folder_arrives_with_everything_in_it(tmp_path):
    folder = tmp_path / "made"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_bytes(b"x")
    storage.publish_folder(folder, tmp_path / "place")
    assert (tmp_path / "place" / "inner" / "file").read_bytes() == b"x"
    assert not folder.exists()


def _hold(home, held):
    os.environ["GLASSBOX_HOME"] = home
    with storage.locked("name", "waiting"):
        held.set()
        signal.pause()


def test_a_lock_is_waited_for_and_a_dead_holder_does_not_keep_it(home):
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    holder = context.Process(target=_hold, args=(str(home), held))
    holder.start()
    assert held.wait(60)
    told = []

    def progress(label, done, total):
        told.append(label)
        holder.kill()  # SIGKILL: it cannot clean up

    with storage.locked("name", "Waiting for it", progress):
        assert told and set(told) == {"Waiting for it"}
    holder.join()
