"""rag.collection: a ZIP of documents, each under its own name, whatever the ZIP tries (T4, T6)."""

import io
import os
import stat
import zipfile
from pathlib import Path

import docx
import psutil
import pytest

from rag.collection import CollectionLimits, documents_in
from rag.documents import DocumentError
from rag.readers.blocks import MEGABYTE


def packed(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def contents(path: Path, **options) -> dict[str, bytes | str]:
    """What each document is shown as, with its bytes or the reason why it cannot be had."""
    result: dict[str, bytes | str] = {}
    with documents_in(path, path.name, **options) as found:
        for entry in found.entries:
            try:
                with entry.open() as file:
                    result[entry.shown] = file.read_bytes()
            except DocumentError as error:
                assert error.message.endswith(".")
                result[entry.shown] = error.code
    return result


def refusal(path: Path, **options) -> str:
    with pytest.raises(DocumentError) as error, documents_in(path, path.name, **options):
        pass
    assert error.value.message.endswith(".")
    return error.value.code


def test_each_member_is_a_document_named_by_its_way_below_the_archive(tmp_path):
    path = packed(tmp_path / "docs.zip", {"b/deep/two.md": b"2", "one.txt": b"1"})
    assert contents(path) == {"docs/b/deep/two.md": b"2", "docs/one.txt": b"1"}


def test_an_archive_of_one_folder_of_its_own_name_names_it_once(tmp_path):
    assert list(contents(packed(tmp_path / "docs.zip", {"docs/a.md": b"1"}))) == ["docs/a.md"]


def test_an_ordinary_file_and_documents_that_are_zips_stay_whole(tmp_path):
    word = io.BytesIO()
    docx.Document().save(word)
    files = {"a.txt": b"text", "a.docx": word.getvalue(), "a.zip": b"PK\x03\x04 broken", "e": b""}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert contents(tmp_path / name, folder="notes") == {f"notes/{name}": data}
    epub = packed(tmp_path / "a.epub", {"mimetype": b"application/epub+zip", "c.xhtml": b"<p>"})
    assert list(contents(epub)) == ["a.epub"]


def test_a_word_document_in_an_archive_is_a_document(tmp_path):
    word = io.BytesIO()
    docx.Document().save(word)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        path = packed(tmp_path / "docs.zip", {"a.docx": word.getvalue()}, method)
        assert contents(path) == {"docs/a.docx": word.getvalue()}


def test_what_systems_leave_in_archives_is_passed_over(tmp_path):
    junk = ("__MACOSX/._a.md", ".DS_Store", "b/.git/config", "Thumbs.db", "x/~$a.docx", "empty/")
    path = packed(tmp_path / "a.zip", {**dict.fromkeys(junk, b"x"), "a.md": b"1"})
    assert list(contents(path)) == ["a/a.md"]
    assert refusal(packed(tmp_path / "b.zip", dict.fromkeys(junk, b"x"))) == "no_documents"
    assert refusal(packed(tmp_path / "c.zip", {})) == "no_documents"


def test_a_path_in_an_archive_is_data_and_nothing_is_written_outside(tmp_path):
    names = ("../../evil.txt", "/etc/passwd", "C:\\Windows\\win.ini", "a\u202etxt.exe", "a" * 300)
    path = packed(tmp_path / "x.zip", dict.fromkeys(names, b"data"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = sorted(tmp_path.iterdir())
    with documents_in(path, path.name, scratch=scratch) as found:
        assert len(found.entries) == len(names)
        for entry in found.entries:
            with entry.open() as file:
                assert scratch in file.parents and file.read_bytes() == b"data"
                assert not set(entry.name) & {"\0"} and "passwd" not in str(file)
            assert ".." not in entry.shown and not entry.shown.startswith("/")
    assert sorted(tmp_path.iterdir()) == before
    assert not list(scratch.iterdir())


def test_two_members_that_look_alike_are_two_documents(tmp_path):
    names = ("a/x.md", "a//x.md", "a/./x.md", "y" * 200 + "1.md", "y" * 200 + "2.md")
    path = packed(tmp_path / "x.zip", {name: name.encode() for name in names})
    assert sorted(contents(path).values()) == sorted(name.encode() for name in names)


def set_name(path: Path, placeholder: str, name: bytes) -> None:
    """Write the raw bytes of a name, as programs do that do not know UTF-8."""
    data = path.read_bytes()
    assert len(placeholder) == len(name) and data.count(placeholder.encode()) == 2
    path.write_bytes(data.replace(placeholder.encode(), name))


@pytest.mark.parametrize("encoding", ["gbk", "utf-8", "big5", "cp437"])
def test_names_without_a_mark_are_read_in_the_encoding_they_were_written_in(tmp_path, encoding):
    name = {"big5": "臺灣報告/會議紀錄.txt", "cp437": "Größe/café.txt"}.get(
        encoding, "合同资料/租赁合同（第二版）.txt"
    )
    raw = name.encode(encoding)
    path = packed(tmp_path / "a.zip", {"x" * len(raw): b"1"})
    set_name(path, "x" * len(raw), raw)
    assert list(contents(path)) == [f"a/{name}"]


def test_names_that_are_marked_as_utf8_are_that(tmp_path):
    assert list(contents(packed(tmp_path / "a.zip", {"文件/一.md": b"1"}))) == ["a/文件/一.md"]


def test_an_encrypted_archive_is_refused(tmp_path):
    path = packed(tmp_path / "a.zip", {"a.txt": b"text"})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    assert refusal(path) == "encrypted"


def test_members_that_cannot_be_had_are_told_one_by_one(tmp_path):
    inner = packed(tmp_path / "inner.zip", {"a.md": b"1"}).read_bytes()
    path = packed(tmp_path / "a.zip", {"in.zip": inner, "empty.txt": b"", "good.txt": b"good"})
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a", zipfile.ZIP_LZMA) as archive:
        archive.writestr(link, "/etc/passwd", zipfile.ZIP_STORED)
        archive.writestr("lzma.txt", b"x" * 100)
        archive.writestr("damaged.txt", b"Here it is." * 9, zipfile.ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Here it is.", b"Here it was", 1))
    assert contents(path) == {
        "a/damaged.txt": "damaged",
        "a/empty.txt": "empty",
        "a/good.txt": b"good",
        "a/in.zip": "nested_archive",
        "a/link.txt": "unsupported",
        "a/lzma.txt": "unsupported",
    }


def test_entries_members_and_all_of_it_are_limited_exactly(tmp_path):
    path = packed(tmp_path / "a.zip", {"a": os.urandom(1000), "b": os.urandom(1000)})
    for limit in (2, 3):
        assert len(contents(path, limits=CollectionLimits(entries=limit))) == 2
    assert refusal(path, limits=CollectionLimits(entries=1)) == "archive_bomb"
    for limit, codes in ((999, ["too_big"] * 2), (1000, [])):
        found = contents(path, limits=CollectionLimits(member_bytes=limit)).values()
        assert [code for code in found if isinstance(code, str)] == codes
    for limit, codes in ((1999, ["archive_bomb"]), (2000, [])):
        found = contents(path, limits=CollectionLimits(inflated_bytes=limit)).values()
        assert [code for code in found if isinstance(code, str)] == codes


def test_a_bomb_neither_fills_the_disk_nor_the_memory(tmp_path):
    path = packed(tmp_path / "a.zip", {"bomb": bytes(40 * MEGABYTE), "good.txt": b"good"})
    before = psutil.Process().memory_info().rss
    assert contents(path) == {"a/bomb": "archive_bomb", "a/good.txt": b"good"}
    assert psutil.Process().memory_info().rss - before < 20 * MEGABYTE


def test_a_directory_of_a_million_entries_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.zip"
    entry = b"PK\x01\x02" + bytes(42)
    end = b"PK\x05\x06" + bytes(6) + b"\xff\xff" + (46 * 1_000_000).to_bytes(4, "little") + bytes(6)
    path.write_bytes(b"PK\x03\x04" + entry * 1_000_000 + end)
    before = psutil.Process().memory_info().rss
    assert refusal(path) == "archive_bomb"
    assert psutil.Process().memory_info().rss - before < 100 * MEGABYTE
