"""rag.readers.pptx: slides with all that is said on them."""

from pathlib import Path
from typing import Any

import pptx
import psutil
import pytest
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls
from pptx.util import Inches

from rag.documents import Document, Limits, load_document
from rag.sandbox import parse_in_sandbox
from tests.office_files import OLE, add_bomb, code_of, rewrite, with_entities

TITLE_AND_TEXT, TITLE_ONLY, BLANK = 1, 5, 6
SLIDE = "ppt/slides/slide1.xml"
BOX = (0, 0, Inches(4), Inches(2))


@pytest.fixture
def deck() -> Any:
    return pptx.Presentation()


def add_slide(deck: Any, title: str, text: str = "") -> Any:
    slide = deck.slides.add_slide(deck.slide_layouts[TITLE_AND_TEXT if title else BLANK])
    if title:
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    return slide


def add_text(slide: Any, text: str) -> None:
    slide.shapes.add_textbox(*BOX).text_frame.text = text


def add_table(slide: Any, rows: list[list[str]]) -> Any:
    table = slide.shapes.add_table(len(rows), len(rows[0]), *BOX).table
    for y, row in enumerate(rows):
        for x, text in enumerate(row):
            table.cell(y, x).text = text
    return table


def read(deck: Any, folder: Path, **limits: int) -> Document:
    deck.save(folder / "a.pptx")
    return load_document(folder / "a.pptx", limits=Limits(**limits))


def test_slides_are_pages_under_their_titles(deck: Any, tmp_path: Path) -> None:
    add_slide(deck, "Plan", "first\nsecond")
    add_slide(deck, "结论", "困惑度越低越好。")
    document = read(deck, tmp_path)
    assert document.text == "Plan\n\nfirst\nsecond\n\n结论\n\n困惑度越低越好。"
    assert [(s.page, s.heading) for s in document.sections] == [(1, ("Plan",)), (2, ("结论",))]
    assert parse_in_sandbox(tmp_path / "a.pptx") == document


def test_speaker_notes_follow_their_slide_in_a_section_of_their_own(
    deck: Any, tmp_path: Path
) -> None:
    slide = add_slide(deck, "Plan", "shown")
    slide.notes_slide.notes_text_frame.text = "said aloud"
    add_slide(deck, "Next", "more")
    document = read(deck, tmp_path)
    assert document.text == "Plan\n\nshown\n\nsaid aloud\n\nNext\n\nmore"
    assert document.sections[1].heading == ("Plan", "Speaker notes")
    assert document.sections[1].page == 1
    assert document.sections[2].heading == ("Next",)


def test_a_slide_without_a_title_does_not_take_that_of_the_slide_before(
    deck: Any, tmp_path: Path
) -> None:
    add_slide(deck, "Plan", "text")
    add_table(add_slide(deck, ""), [["a", "b", "c"], ["1", "2", "3"]])
    add_text(add_slide(deck, ""), "A short line")
    headings = [(s.page, s.heading) for s in read(deck, tmp_path).sections]
    assert headings == [(1, ("Plan",)), (2, ()), (3, ("A short line",))]


def test_a_cell_of_a_table_stands_with_its_heading(deck: Any, tmp_path: Path) -> None:
    rows = [["Team", "Name", "Age"], ["Red", "Ada", "36"], ["", "Bob", "20"]]
    table = add_table(add_slide(deck, "Staff", "text"), rows)
    table.cell(1, 0).merge(table.cell(2, 0))
    assert read(deck, tmp_path).text.splitlines()[-3:] == [
        "Team | Name | Age",
        "Team: Red; Name: Ada; Age: 36",
        "Team: Red; Name: Bob; Age: 20",
    ]


def test_a_chart_becomes_a_row_for_each_category(deck: Any, tmp_path: Path) -> None:
    data = CategoryChartData(number_format="0%")
    data.categories = ["East", "West"]
    data.add_series("2023", (0.25, 0.5))
    data.add_series("2024", (0.75, None))
    chart = add_slide(deck, "Share", "text").shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, *BOX, data
    )
    chart.chart.chart_title.text_frame.text = "By region"
    assert read(deck, tmp_path).text.splitlines()[-4:] == [
        "By region",
        "2023 | 2024",
        "East; 2023: 25%; 2024: 75%",
        "West; 2023: 50%",
    ]


def test_a_scatter_chart_has_its_points(deck: Any, tmp_path: Path) -> None:
    data = XyChartData()
    series = data.add_series("Size")
    series.add_data_point(1.5, 0.1 + 0.2)
    add_slide(deck, "Plot", "text").shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *BOX, data)
    assert read(deck, tmp_path).text.endswith("Size\n1.5; Size: 0.3")


def test_text_in_groups_formulas_and_alternate_content_is_read_once(
    deck: Any, tmp_path: Path
) -> None:
    slide = add_slide(deck, "Plan", "text")
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(*BOX).text_frame.text = "in a group"
    shape = "<p:sp><p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    slide.shapes._spTree.append(
        parse_xml(
            f"<mc:AlternateContent {nsdecls('p', 'a')} "
            'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
            f"<mc:Choice Requires='a14'>{shape.format('new')}</mc:Choice>"
            f"<mc:Fallback>{shape.format('old')}</mc:Fallback></mc:AlternateContent>"
        )
    )
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]._p
    paragraph.append(
        parse_xml(
            f'<a14:m {nsdecls("a")} xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"'
            ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">'
            "<m:oMath><m:r><m:t>E=mc²</m:t></m:r></m:oMath></a14:m>"
        )
    )
    assert read(deck, tmp_path).text == "Plan\n\ntextE=mc²\n\nin a group\n\nnew"


def test_footers_are_read_once_and_slide_numbers_never(deck: Any, tmp_path: Path) -> None:
    for number in range(1, 4):
        slide = add_slide(deck, f"Slide {number}", "text")
        for kind, text in (("ftr", "Acme confidential"), ("sldNum", str(number))):
            slide.shapes._spTree.append(
                parse_xml(
                    f"<p:sp {nsdecls('p', 'a')}><p:nvSpPr><p:cNvPr id='9' name='x'/><p:cNvSpPr/>"
                    f"<p:nvPr><p:ph type='{kind}'/></p:nvPr></p:nvSpPr><p:spPr/>"
                    f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
                )
            )
    text = read(deck, tmp_path).text
    assert text.count("Acme confidential") == 1
    assert text.endswith("Slide 3\n\ntext")


def test_hidden_slides_are_left_out_and_counted(deck: Any, tmp_path: Path) -> None:
    add_slide(deck, "Shown", "text")
    add_slide(deck, "Hidden", "obey me").element.set("show", "0")
    add_slide(deck, "Third", "text")
    document = read(deck, tmp_path)
    assert "obey" not in document.text
    assert document.sections[-1].page == 3
    assert document.warnings == ("Hidden slides were left out: 2.",)


def test_slides_without_text_are_refused(deck: Any, tmp_path: Path) -> None:
    assert code_of(lambda: read(deck, tmp_path)) == "no_text"
    add_slide(deck, "")
    assert code_of(lambda: read(deck, tmp_path)) == "no_text"
    (tmp_path / "a.pptx").write_bytes(b"")
    assert code_of(lambda: load_document(tmp_path / "a.pptx")) == "empty"


def test_the_limit_of_pages_holds_for_slides(deck: Any, tmp_path: Path) -> None:
    for _ in range(3):
        add_slide(deck, "Plan", "text")
    assert read(deck, tmp_path, pages=3).sections[-1].page == 3
    assert code_of(lambda: read(deck, tmp_path, pages=2)) == "too_many_pages"


def test_a_truncated_or_broken_presentation_is_refused(deck: Any, tmp_path: Path) -> None:
    add_slide(deck, "Plan", "text")
    deck.save(tmp_path / "whole.pptx")
    data = (tmp_path / "whole.pptx").read_bytes()
    for share in (0.1, 0.5, 0.99):
        (tmp_path / "a.pptx").write_bytes(data[: int(len(data) * share)])
        assert code_of(lambda: load_document(tmp_path / "a.pptx")) == "damaged"
    for name in (SLIDE, "ppt/presentation.xml", "[Content_Types].xml", "_rels/.rels"):
        changes = {name: lambda old: old[: len(old) // 2]}
        path = rewrite(tmp_path / "whole.pptx", tmp_path / "a.pptx", changes)
        assert code_of(lambda: load_document(tmp_path / "a.pptx")) in ("damaged", "unsupported"), (
            path
        )


@pytest.mark.parametrize(
    "kind",
    [
        b"application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
        b"application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
        b"application/vnd.ms-powerpoint.template.macroEnabled.main+xml",
        b"application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
        b"application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
    ],
)
def test_slide_shows_templates_and_macros_are_read(deck: Any, tmp_path: Path, kind: bytes) -> None:
    add_slide(deck, "Plan", "text")
    deck.save(tmp_path / "plain.pptx")
    plain = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
    changes = {
        "[Content_Types].xml": lambda old: old.replace(plain, kind),
        "ppt/vbaProject.bin": lambda _: OLE,
    }
    path = rewrite(tmp_path / "plain.pptx", tmp_path / "a.pptm", changes)
    assert load_document(path).text == "Plan\n\ntext"


def test_protected_and_old_presentations_are_refused_with_advice(tmp_path: Path) -> None:
    for stream, code, advice in (
        ("EncryptedPackage", "encrypted", "without a password"),
        ("PowerPoint Document", "unsupported", "PPTX"),
    ):
        (tmp_path / "a.ppt").write_bytes(OLE + bytes(512) + stream.encode("utf-16-le"))
        assert code_of(lambda: load_document(tmp_path / "a.ppt")) == code
        with pytest.raises(Exception, match=advice):
            load_document(tmp_path / "a.ppt")


def test_bombs_are_refused_and_cost_the_server_nothing(deck: Any, tmp_path: Path) -> None:
    before = psutil.Process().memory_info().rss
    add_slide(deck, "Plan", "text")
    deck.save(tmp_path / "plain.pptx")
    path = rewrite(tmp_path / "plain.pptx", tmp_path / "entities.pptx", {SLIDE: with_entities})
    assert code_of(lambda: parse_in_sandbox(path)) == "unsafe"
    add_bomb(tmp_path / "plain.pptx")
    assert code_of(lambda: parse_in_sandbox(tmp_path / "plain.pptx")) == "archive_bomb"
    assert psutil.Process().memory_info().rss - before < 100 * 2**20


def test_a_pptx_is_known_by_its_content_whatever_its_name(deck: Any, tmp_path: Path) -> None:
    add_slide(deck, "Plan", "text")
    deck.save(tmp_path / "plain.pptx")
    data = (tmp_path / "plain.pptx").read_bytes()
    for name in ("a.docx", "a.txt", "a.pdf.html"):
        (tmp_path / name).write_bytes(data)
        document = load_document(tmp_path / name)
        assert document.text == "Plan\n\ntext"
        assert bool(document.warnings) == name.endswith("docx")
