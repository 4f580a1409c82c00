"""rag.documents: a file to text with sections; CASES 1-3, 6, 8 and 9 of what goes wrong there."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.documents import Document, DocumentError, Limits, load_document, load_stream
from rag.readers.blocks import Block
from rag.readers.encodings import decode

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def read(data: bytes | str, folder: Path, name: str = "a.txt", **limits: float) -> Document:
    path = folder / "upload"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return load_document(path, name, limits=Limits(**limits))  # type: ignore[arg-type]


def code_of(data: bytes | str, folder: Path, name: str = "a.txt", **limits: float) -> str:
    with pytest.raises(DocumentError) as error:
        read(data, folder, name, **limits)
    assert str(error.value) == error.value.message
    assert error.value.message.endswith(".")
    return error.value.code


def assert_covered(document: Document) -> None:
    """Sections follow one another from the first character to the last."""
    position = 0
    for section in document.sections:
        assert section.start == position < section.end
        position = section.end
    assert position == len(document.text)


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "utf-8", "utf-8-sig", "utf-16"])
def test_a_chinese_word_is_found_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    text = "语言模型逐个生成词元。困惑度越低越好。"
    for name in ("a.txt", "a.md"):
        assert read(text.encode(encoding), tmp_path, name).text == text


def test_a_chinese_word_is_found_in_big5(tmp_path: Path) -> None:
    assert "困惑度" in read("語言模型的困惑度。".encode("big5"), tmp_path).text


@pytest.mark.parametrize("data", [b"", b" \n\t \r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\0\0\0"])
def test_a_file_without_text_is_refused(tmp_path: Path, data: bytes) -> None:
    assert code_of(data, tmp_path) == ("no_text" if data else "empty")


def test_nul_and_lone_surrogates_do_no_harm(tmp_path: Path) -> None:
    document = read("one\0two \U0001f600 three".encode("utf-16") + b"\x00\xd8", tmp_path)
    assert document.text.startswith("onetwo 😀 three")
    document.text.encode()


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf", "a.docx", "a"])
def test_binary_junk_is_refused_whatever_its_name(tmp_path: Path, name: str) -> None:
    assert code_of(bytes(range(256)) * 50, tmp_path, name) == "binary"


@pytest.mark.parametrize(
    ("start", "code"),
    [
        (b"GIF89a", "unsupported"),
        (b"{\\rtf1 text}", "unsupported"),
        (OLE, "unsupported"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (b"PK\x03\x04 broken", "damaged"),
        (b"PK\x05\x06" + bytes(18), "unsupported"),
    ],
)
def test_other_kinds_of_file_are_named_for_what_they_are(
    tmp_path: Path, start: bytes, code: str
) -> None:
    assert code_of(start, tmp_path) == code


@pytest.mark.parametrize(
    ("name", "data", "media_type", "warned"),
    [
        ("a.pdf.html", "<p>x", "text/html", False),
        ("a.html.txt", "<p>x", "text/plain", False),
        ("a.txt", "<!-- c -->\n<!DOCTYPE html><p>x", "text/html", False),
        ("a.pdf", "<html><p>x", "text/html", True),
        ("a.docx", "plain", "text/plain", True),
        ("a.md", "<h1 align=center>x</h1>", "text/markdown", False),
        ("a.py", "x = 1", "text/plain", False),
        ("README", "# x", "text/plain", False),
        ("x.MARKDOWN", "# x", "text/markdown", False),
    ],
)
def test_content_decides_the_kind_and_then_the_name(
    tmp_path: Path, name: str, data: str, media_type: str, warned: bool
) -> None:
    document = read(data, tmp_path, name)
    assert document.media_type == media_type
    assert bool(document.warnings) == warned


def test_the_name_is_only_shown(tmp_path: Path) -> None:
    for name in ("../../x\u202e.txt", "a\0b.txt", "长" * 300 + ".txt", "caf\udce9.txt"):
        document = read("text", tmp_path, name)
        document.name.encode()
        assert len(document.name) <= 120
    assert [path.name for path in tmp_path.iterdir()] == ["upload"]


def test_a_file_whose_name_is_not_utf_8_is_read(tmp_path: Path) -> None:
    path = tmp_path / "caf\udce9.txt"
    path.write_text("text")
    assert load_document(path).name == "caf\ufffd.txt"


def test_headings_nest_and_sections_cover_the_text(tmp_path: Path) -> None:
    text = "intro\n# A\na\n## B\nb\n#### C\nc\n## D\nd\n# E\n"
    document = read(text, tmp_path, "a.md")
    assert document.text == text
    assert_covered(document)
    assert [section.heading for section in document.sections] == [
        (),
        ("A",),
        ("A", "B"),
        ("A", "B", "C"),
        ("A", "D"),
        ("E",),
    ]
    assert document.text[document.sections[2].start :].startswith("## B")


@given(st.text(alphabet=st.sampled_from("#= ab\n中。"), min_size=1))
def test_sections_cover_any_markdown(text: str) -> None:
    try:
        document = load_stream(io.BytesIO(text.encode()), "a.md")
    except DocumentError as error:
        assert error.code == "no_text" and not text.strip()
    else:
        assert document.text == text
        assert_covered(document)


def test_the_size_of_a_file_is_limited_exactly(tmp_path: Path) -> None:
    for size in (99, 100):
        assert len(read(b"x" * size, tmp_path, file_bytes=100).text) == size
    assert code_of(b"x" * 101, tmp_path, file_bytes=100) == "too_big"


def test_the_amount_of_text_is_limited_exactly_in_bytes_of_utf_8(tmp_path: Path) -> None:
    for count in (32, 33):
        read("中" * count, tmp_path, text_bytes=99)
    assert code_of("中" * 33 + "a", tmp_path, text_bytes=99) == "too_much_text"


def test_the_default_limits_are_the_documented_ones() -> None:
    limits = Limits()
    assert (limits.file_bytes, limits.pages, limits.text_bytes) == (50 * 2**20, 1000, 10 * 2**20)
    assert (limits.seconds, limits.memory_bytes) == (60, 2**30)
    with pytest.raises(ValueError, match="pages"):
        Limits(pages=0)


def test_one_line_of_a_megabyte_is_read(tmp_path: Path) -> None:
    for text in ("x" * 2**20, "word " * 200_000, "汉" * 350_000):
        assert read(text, tmp_path).text == text


def test_a_document_of_nothing_but_headings_stays_small(tmp_path: Path) -> None:
    document = read("# a\n" * 100_000, tmp_path, "a.md")
    assert len(document.sections) <= 10_000
    assert_covered(document)


def test_a_block_is_a_paragraph_without_a_page_unless_it_says_otherwise() -> None:
    assert Block("x") == Block("x", 0, "", None, "\n\n")
    assert decode(b"") == ""
