"""rag.readers.html: what a reader of the page would see."""

from pathlib import Path

import pytest

from rag.documents import Document, DocumentError, load_document


def read(markup: str | bytes, folder: Path, name: str = "page.html") -> Document:
    data = markup if isinstance(markup, bytes) else markup.encode()
    (folder / name).write_bytes(data)
    return load_document(folder / name)


def test_scripts_styles_navigation_and_hidden_text_are_left_out(tmp_path: Path) -> None:
    document = read(
        "<head><style>p {color: red}</style></head><body><nav>Home</nav><p>Seen.<script>1</script>"
        "<!-- comment --><template>t</template><p hidden>obey<p style='display: none'>obey"
        "<div role=navigation>More</div><noscript>off</noscript><button>Buy</button></body>",
        tmp_path,
    )
    assert document.text == "Seen."


def test_headings_make_sections_and_the_title_stands_in_for_h1(tmp_path: Path) -> None:
    markup = "<title>Guide</title><h2>Install</h2><p>Do this.<h3>Linux</h3><p>And that."
    document = read(markup, tmp_path)
    assert document.text == "Guide\n\nInstall\n\nDo this.\n\nLinux\n\nAnd that."
    assert document.sections[-1].heading == ("Guide", "Install", "Linux")
    assert read("<title>Site</title><h1>Page</h1><p>x", tmp_path).text == "Page\n\nx"


def test_entities_are_decoded_and_white_space_collapses(tmp_path: Path) -> None:
    markup = "<p>a &lt;b&gt; &amp;\n   &#x4e2d;&eacute; <b> bold </b> x<br>y&shy;z"
    assert read(markup, tmp_path).text == "a <b> & 中é bold x\nyz"


def test_inline_tags_do_not_break_words(tmp_path: Path) -> None:
    markup = "<p>H<sub>2</sub>O<table><tr><td>C<b>O</b><sub>2</sub><td>x</table>"
    assert read(markup, tmp_path).text == "H2O\n\nCO2: x"


def test_preformatted_text_keeps_its_lines(tmp_path: Path) -> None:
    assert read("<pre>def f():\n    return 1\n</pre>", tmp_path).text == "def f():\n    return 1"


def test_tables_are_rows_with_their_headings_and_merged_cells(tmp_path: Path) -> None:
    markup = (
        "<table><caption>Staff</caption><tr><th>Team<th colspan=2>Name<th>Age"
        "<tr><td rowspan=2>Red<td>Ada<td>Lovelace<td>36<tr><td>Bob<td>Ray<td>20</table>"
    )
    assert read(markup, tmp_path).text.splitlines() == [
        "Staff",
        "",
        "Team | Name | Age",
        "Team: Red; Name: Ada; Name: Lovelace; Age: 36",
        "Team: Red; Name: Bob; Name: Ray; Age: 20",
    ]


def test_a_table_that_arranges_the_page_is_no_table(tmp_path: Path) -> None:
    markup = "<table><tr><td><h2>A</h2><p>one</td><td><table><tr><td>x<td>y</table></table>"
    assert read(markup, tmp_path).text == "A\n\none\n\nx: y"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<meta charset=gbk>", "gbk"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=gb2312">', "gbk"),
        ('<?xml version="1.0" encoding="big5"?>', "big5"),
        ("", "gbk"),
        ("<meta charset=utf-8>", "gbk"),
        ("<meta charset=gbk>", "utf-8"),
        ("<meta charset=gbk>", "utf-8-sig"),
        ("<meta charset=gbk>", "utf-16"),
    ],
)
def test_the_charset_is_found_whatever_the_page_claims(
    head: str, encoding: str, tmp_path: Path
) -> None:
    markup = f"{head}<html><body><p>中文可以找到</p></body></html>"
    assert "中文可以找到" in read(markup.encode(encoding), tmp_path).text


def test_a_page_that_declares_entities_is_refused(tmp_path: Path) -> None:
    bomb = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
    for start in ("<!DOCTYPE html [", '<?xml version="1.0"?><!DOCTYPE lolz SYSTEM "file:///x" ['):
        with pytest.raises(DocumentError) as error:
            read(f'{start}<!ENTITY a0 "ha">{bomb}]><html><p>&a8;</p></html>', tmp_path)
        assert error.value.code == "unsafe"


def test_nothing_is_fetched_and_no_file_is_read(tmp_path: Path) -> None:
    markup = '<!DOCTYPE html SYSTEM "http://127.0.0.1:9/x.dtd"><p>&xxe; <img src="file:///x">end'
    assert read(markup, tmp_path).text == "&xxe; end"


@pytest.mark.parametrize(
    "markup",
    ["<div>" * 20_000 + "deep", "<table><tr><td>" * 500 + "deep", "<b>" * 20_000 + "deep"],
)
def test_deep_nesting_is_no_harm(markup: str, tmp_path: Path) -> None:
    assert read(markup, tmp_path).text == "deep"


def test_huge_spans_cost_nothing(tmp_path: Path) -> None:
    markup = "<table><tr><td colspan=99999 rowspan=99999>a<td>b<tr><td>c<td colspan=-1>d</table>"
    assert "c" in read(markup, tmp_path).text


def test_markup_characters_alone_are_only_text(tmp_path: Path) -> None:
    assert read("<html>List<int> 1 < 2 && $5", tmp_path).text.startswith("List")


def test_tags_that_xhtml_closes_at_once_hide_nothing(tmp_path: Path) -> None:
    markup = (
        '<?xml version="1.0"?><html><head><title/><script src="x.js"/></head>'
        '<body><h1><a id="x"/>One</h1><p>Two<br/>three</p><div/></body></html>'
    )
    assert read(markup, tmp_path, "a.xhtml").text == "One\n\nTwo\nthree"
