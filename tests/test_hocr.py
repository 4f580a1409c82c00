"""rag.readers.hocr: what a recognition program answers, as lines at places."""

import pytest

from rag.readers.hocr import Box, read_hocr


def hocr(*line_spans: str, box: str = "0 0 600 800") -> bytes:
    spans = "".join(line_spans)
    return (
        "<html xmlns='http://www.w3.org/1999/xhtml'><body>"
        f"<div class='ocr_page' title='bbox {box}'><p class='ocr_par'>{spans}</p></div>"
        "</body></html>"
    ).encode()


def line(words: str, title: str = "", percent: int = 95, box: str = "60 100 300 130") -> str:
    spans = "".join(
        f"<span class='ocrx_word' title='bbox 0 0 1 1; x_wconf {percent}'>{word}</span>"
        for word in words.split()
    )
    return f"<span class='ocr_line' title='bbox {box}; {title}x_size 30'>{spans}</span>"


def texts(*spans: str) -> list[str]:
    return [line.text for line in read_hocr(hocr(*spans), 72)[0].lines]


def test_a_line_is_placed_in_points_from_the_lower_left_on_its_baseline() -> None:
    (page,) = read_hocr(hocr(line("a b", "baseline 0.001 -10; ")), 144)
    (found,) = page.lines
    assert (found.text, found.x, found.right, found.y) == ("a b", 30, 150, (800 - 120) / 2)
    assert found.size == 15
    assert page.confidence == 95


def test_chinese_and_latin_letters_of_one_font_have_one_size() -> None:
    # As measured by tesseract 5.3 in 10 points at 300 dpi: 46 pixels and 39.
    assert hocr_size("检索改变", 46) == pytest.approx(hocr_size("changes", 39), rel=0.02)


def hocr_size(word: str, measured: int) -> float:
    spans = line(word).replace("x_size 30", f"x_size {measured}")
    return read_hocr(hocr(spans), 300)[0].lines[0].size


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("检索 改变 上 下 文 ， 而 不", "检索改变上下文，而不"),
        ("参见 Shannon 的 实验", "参见 Shannon 的实验"),
        ("建 于 1923 年 。 It is", "建于1923年。It is"),
        ("one two", "one two"),
    ],
)
def test_spaces_part_words_but_not_chinese_characters(words: str, text: str) -> None:
    assert texts(line(words)) == [text]


def test_strokes_and_what_was_hardly_recognised_are_left_out() -> None:
    assert texts(line("| —"), line("xq~", percent=12), line("text")) == ["text"]


def test_lines_that_run_up_or_down_are_noticed_and_turned_when_the_angle_is_known() -> None:
    tall = "500 100 530 400"
    assert read_hocr(hocr(line("some words", box=tall)), 72)[0].sideways
    (page,) = read_hocr(hocr(line("some words", "textangle 270; ", box=tall)), 72)
    assert not page.sideways
    assert (page.lines[0].x, page.lines[0].right) == (100, 400)


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turning_keeps_a_box_its_size(angle: int) -> None:
    turned = Box(10, 20, 30, 70).turned(angle, Box(0, 0, 600, 800))
    sides = turned.right - turned.left, turned.bottom - turned.top
    assert sides == ((20, 50) if angle == 180 else (50, 20))
    assert min(turned.left, turned.top) >= 0


@pytest.mark.parametrize("data", [b"", b"   ", b"\0\1"])
def test_what_is_no_hocr_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="no hOCR"):
        read_hocr(data, 72)


def test_entities_are_not_resolved() -> None:
    document = b"<!DOCTYPE html [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + hocr(line("x &a; y"))
    assert "root" not in "".join(
        line.text for page in read_hocr(document, 72) for line in page.lines
    )
