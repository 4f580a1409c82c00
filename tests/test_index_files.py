"""`rag.index_files`: a part is whole and as it was written, or it is not used."""

import os
import time

import pytest

from rag.index_files import DamagedPart, IndexFiles, Manifest, Part, with_parts
from rag.records import Position


def write(files: IndexFiles, kind: str = "words", text: str = "content") -> Part:
    with files.writing(kind, Position(7, 3)) as (folder, facts, made):
        (folder / "a.npy").write_text(text)
        facts["recall"] = 0.99
    return made[0]


def test_a_part_is_found_again_by_its_record(tmp_path):
    files = IndexFiles(tmp_path)
    part = write(files)
    again = Manifest.from_json(Manifest((part,)).to_json())
    assert again == Manifest((part,)) and again.of("words")[0].facts == {"recall": 0.99}
    assert (files.verified(part) / "a.npy").read_text() == "content"


def test_no_record_is_an_empty_one():
    assert Manifest.from_json(None) == Manifest() == Manifest.from_json(Manifest().to_json())


@pytest.mark.parametrize("content", ["Content", "content ", ""])
def test_other_bytes_are_refused(tmp_path, content):
    files = IndexFiles(tmp_path)
    part = write(files)
    (tmp_path / "index" / part.name / "a.npy").write_text(content)
    with pytest.raises(DamagedPart, match="not what was saved"):
        files.verified(part)


def test_a_failure_while_writing_leaves_nothing(tmp_path):
    files = IndexFiles(tmp_path)
    with pytest.raises(OSError), files.writing("words", Position()) as (folder, _, made):
        (folder / "a").write_text("half")
        raise OSError(28, "No space left on device")
    assert made == [] and list((tmp_path / "index").iterdir()) == []


def test_what_nothing_names_goes_when_it_is_old(tmp_path):
    files = IndexFiles(tmp_path)
    kept, old, new = write(files), write(files), write(files)
    for part in (kept, old):
        os.utime(tmp_path / "index" / part.name, (time.time() - 7200,) * 2)
    files.clean(Manifest((kept,)))
    assert {p.name for p in (tmp_path / "index").iterdir()} == {kept.name, new.name}


def test_following_starts_where_the_last_part_of_each_kind_ended():
    def part(kind: str, passage: int, removal: int) -> Part:
        return Part(kind, "name", Position(passage, removal), {})

    manifest = Manifest((part("words", 10, 2), part("words", 20, 4), part("han", 15, 3)))
    assert manifest.position("words") == Position(20, 2)
    assert manifest.position("words", "han") == Position(15, 2)
    assert manifest.position("words", "other") == Position()
    assert len(with_parts(manifest, "words", [part("words", 30, 5)]).parts) == 2
