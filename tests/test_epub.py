"""rag.readers.epub: a book in its reading order, under the titles of its chapters."""

import zipfile
from pathlib import Path

import psutil
import pytest

from rag.documents import Document, Limits, load_document
from rag.sandbox import parse_in_sandbox
from tests.office_files import add_bomb, code_of, rewrite, with_entities

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="css" href="a.css" media-type="text/css"/>
{items}
</manifest><spine>{spine}</spine></package>"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>The Book</title><script src="x"/></head>
<body>{body}</body></html>"""
NAV = """<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body>
<nav epub:type="toc"><ol>{links}</ol></nav></body></html>"""
NCX = """<?xml version="1.0"?>
<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{points}</navMap></ncx>"""


def book(
    path: Path,
    pages: dict[str, str],
    spine: list[str] | None = None,
    titles: dict[str, str] | None = None,
    old_contents: bool = False,
) -> Path:
    """A book of these pages (name: body), with a table of contents of these titles."""
    order = list(pages) if spine is None else spine
    items = "".join(
        f'<item id="p{n}" href="{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(pages)
    )
    references = "".join(f'<itemref idref="p{list(pages).index(name)}"/>' for name in order)
    contents = titles or {}
    files = {
        "META-INF/container.xml": CONTAINER,
        "OEBPS/content.opf": PACKAGE.format(
            items=items, spine=references + "<itemref idref='nav'/>"
        ),
        "OEBPS/toc.ncx" if old_contents else "OEBPS/nav.xhtml": (
            NCX.format(
                points="".join(
                    f"<navPoint><navLabel><text>{title}</text></navLabel><content src='{name}'/>"
                    "</navPoint>"
                    for name, title in contents.items()
                )
            )
            if old_contents
            else NAV.format(
                links="".join(f"<li><a href='{n}'>{t}</a></li>" for n, t in contents.items())
            )
        ),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for name, text in files.items():
            archive.writestr(name, text)
        for name, body in pages.items():
            archive.writestr(f"OEBPS/{name}", PAGE.format(body=body))
    return path


def headings(document: Document) -> list[tuple[str, ...]]:
    return [section.heading for section in document.sections]


def test_pages_come_in_the_order_of_the_spine(tmp_path: Path) -> None:
    pages = {"b.xhtml": "<h1>Two</h1><p>second</p>", "text/a.xhtml": "<h1>One</h1><p>first</p>"}
    document = load_document(book(tmp_path / "a.epub", pages, ["text/a.xhtml", "b.xhtml"]))
    assert document.text == "One\n\nfirst\n\nTwo\n\nsecond"
    assert headings(document) == [("One",), ("Two",)]
    assert document.media_type == "application/epub+zip"
    assert parse_in_sandbox(tmp_path / "a.epub") == document


@pytest.mark.parametrize("old_contents", [False, True])
def test_a_page_without_a_heading_has_its_title_from_the_table_of_contents(
    tmp_path: Path, old_contents: bool
) -> None:
    pages = {"a b.xhtml": "<p>first</p>", "b.xhtml": "<p>second</p>", "c.xhtml": "<p>third</p>"}
    titles = {"a%20b.xhtml#x": "第一章 开始", "c.xhtml": "第三章"}
    document = load_document(book(tmp_path / "a.epub", pages, None, titles, old_contents))
    assert document.text == "first\n\nsecond\n\nthird"
    assert headings(document) == [("第一章 开始",), ("第三章",)]


def test_parts_and_chapters_nest(tmp_path: Path) -> None:
    pages = {
        "p.xhtml": "<h1>Part</h1>",
        "c.xhtml": "<h2>One</h2><p>x</p>",
        "d.xhtml": "<h2>Two</h2>",
    }
    document = load_document(book(tmp_path / "a.epub", pages))
    assert headings(document) == [("Part",), ("Part", "One"), ("Part", "Two")]


def test_tables_are_rows_with_their_headings(tmp_path: Path) -> None:
    body = "<table><tr><th>Item</th><th>Sum</th></tr><tr><td>Tea</td><td>5</td></tr></table>"
    text = load_document(book(tmp_path / "a.epub", {"a.xhtml": body})).text
    assert text == "Item | Sum\nItem: Tea; Sum: 5"


def test_a_page_named_twice_or_missing_does_no_harm(tmp_path: Path) -> None:
    path = book(tmp_path / "whole.epub", {"a.xhtml": "<p>once</p>"}, ["a.xhtml", "a.xhtml"])
    assert load_document(path).text == "once"
    gone = b'<item id="q" href="gone.xhtml" media-type="application/xhtml+xml"/></manifest>'
    changes = {
        "OEBPS/content.opf": lambda old: old.replace(b"</manifest>", gone).replace(
            b"</spine>", b'<itemref idref="q"/><itemref idref="none"/></spine>'
        )
    }
    document = load_document(rewrite(path, tmp_path / "a.epub", changes))
    assert document.text == "once"
    assert document.warnings == (
        "1 of 2 files of this book are missing or damaged, and were left out.",
    )


def test_pages_in_chinese_encodings_are_read(tmp_path: Path) -> None:
    page = PAGE.format(body="<p>困惑度可以找到</p>").replace("utf-8", "gbk").encode("gbk")
    path = book(tmp_path / "plain.epub", {"a.xhtml": ""})
    changes = {"OEBPS/a.xhtml": lambda _: page}
    assert load_document(rewrite(path, tmp_path / "a.epub", changes)).text == "困惑度可以找到"


def test_a_book_with_copy_protection_is_refused_and_one_with_hidden_fonts_is_not(
    tmp_path: Path,
) -> None:
    path = book(tmp_path / "plain.epub", {"a.xhtml": "<p>text</p>"})
    encryption = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
        'xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>'
        '<enc:CipherReference URI="OEBPS/{}"/></enc:CipherData></enc:EncryptedData></encryption>'
    )
    for name, refused in (("a.xhtml", True), ("font.ttf", False)):
        changes = {"META-INF/encryption.xml": lambda _: encryption.format(name).encode()}  # noqa: B023
        changed = rewrite(path, tmp_path / "a.epub", changes)
        if refused:
            assert code_of(lambda: load_document(changed)) == "encrypted"  # noqa: B023
        else:
            assert load_document(changed).text == "text"


def test_a_book_without_text_is_refused(tmp_path: Path) -> None:
    path = book(tmp_path / "a.epub", {"a.xhtml": "<img src='x.png'/>"})
    assert code_of(lambda: load_document(path)) == "no_text"
    path.write_bytes(b"")
    assert code_of(lambda: load_document(path)) == "empty"


def test_a_truncated_or_broken_book_is_refused(tmp_path: Path) -> None:
    path = book(tmp_path / "whole.epub", {"a.xhtml": "<p>text</p>" * 1000})
    data = path.read_bytes()
    for share in (0.1, 0.5, 0.99):
        (tmp_path / "a.epub").write_bytes(data[: int(len(data) * share)])
        assert code_of(lambda: load_document(tmp_path / "a.epub")) == "damaged"
    for name in ("META-INF/container.xml", "OEBPS/content.opf"):
        for change in (lambda old: b"", lambda old: old[:80], lambda old: b"<x/>"):
            broken = rewrite(path, tmp_path / "a.epub", {name: change})
            assert code_of(lambda: load_document(broken)) == "damaged"  # noqa: B023


def test_names_that_lead_out_of_the_book_lead_nowhere(tmp_path: Path) -> None:
    path = book(tmp_path / "plain.epub", {"a.xhtml": "<p>text</p>"})
    for name in (b"../../../../etc/passwd", b"file:///etc/passwd", b"/etc/passwd"):
        changes = {"OEBPS/content.opf": lambda old: old.replace(b"a.xhtml", name)}  # noqa: B023
        changed = rewrite(path, tmp_path / "a.epub", changes)
        assert code_of(lambda: load_document(changed)) == "no_text"  # noqa: B023


def test_bombs_are_refused_and_cost_the_server_nothing(tmp_path: Path) -> None:
    before = psutil.Process().memory_info().rss
    path = book(tmp_path / "plain.epub", {"a.xhtml": "<p>text &a9;</p>"}, None, {"a.xhtml": "A"})
    for name in ("META-INF/container.xml", "OEBPS/content.opf", "OEBPS/nav.xhtml", "OEBPS/a.xhtml"):
        bomb = rewrite(path, tmp_path / "a.epub", {name: with_entities})
        assert code_of(lambda: parse_in_sandbox(bomb)) == "unsafe"  # noqa: B023
    outside = b'<!DOCTYPE package SYSTEM "file:///etc/passwd"><package'
    changes = {"OEBPS/content.opf": lambda old: old.replace(b"<package", outside)}
    assert "text" in parse_in_sandbox(rewrite(path, tmp_path / "a.epub", changes)).text
    add_bomb(path)
    assert code_of(lambda: parse_in_sandbox(path)) == "archive_bomb"
    assert psutil.Process().memory_info().rss - before < 100 * 2**20


def test_the_limit_of_text_holds(tmp_path: Path) -> None:
    path = book(tmp_path / "a.epub", {f"{n}.xhtml": "<p>words</p>" * 100 for n in range(20)})
    assert code_of(lambda: load_document(path, limits=Limits(text_bytes=5_000))) == "too_much_text"


def test_a_damaged_page_does_not_cost_the_rest(tmp_path: Path) -> None:
    path = book(tmp_path / "plain.epub", {"a.xhtml": "<p>one</p>", "b.xhtml": "<p>two</p>"})
    changes = {"OEBPS/a.xhtml": lambda _: bytes(range(256)) * 20}
    document = load_document(rewrite(path, tmp_path / "a.epub", changes))
    assert document.text == "two"
    assert document.warnings[0].startswith("1 of 2 files")
