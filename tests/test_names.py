"""rag.names: file names are data to show, never paths (THREATS T4, CASES 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.names import display_name, display_path


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("报告 第二版.docx", "报告 第二版.docx"),
        ("👩‍🔬 notes.md", "👩‍🔬 notes.md"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("C:\\Users\\me\\a.txt", "a.txt"),
        ("evil\u202efdp.exe", "evil\ufffdfdp.exe"),
        ("a\0b\x1b[31m\n.txt", "a\ufffdb\ufffd[31m .txt"),
        ("a.pdf.html", "a.pdf.html"),
        ("  two   spaces .txt ", "two spaces .txt"),
        ("caf\udce9.txt", "caf\ufffd.txt"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("/", "unnamed"),
        ("\u202e\u202e", "unnamed"),
    ],
)
def test_a_name_is_shown_harmlessly(name: str, shown: str) -> None:
    assert display_name(name) == shown


def test_a_long_name_is_cut_and_keeps_its_extension() -> None:
    shown = display_name("长" * 300 + ".docx")
    assert len(shown) == 120
    assert shown.endswith("….docx")


def test_a_name_in_a_folder_is_shown_with_its_way_as_harmlessly() -> None:
    assert display_path("a.md", "notes/2026") == "notes/2026/a.md"
    assert display_path("a.md") == display_path("../a.md") == "a.md"
    assert display_path("a\n.md", "x\x1b/..") == "x\ufffd/unnamed/a .md"
    long = display_path("a.md", "d" * 90 + "/" + "e" * 90)
    assert long.endswith("e/a.md") and len(long) < 130


def test_an_endless_extension_is_cut_too() -> None:
    assert len(display_name("a." + "b" * 1000)) == 120


@given(st.text())
def test_any_name_becomes_one_short_line_that_can_be_encoded(name: str) -> None:
    shown = display_name(name)
    assert 0 < len(shown) <= 120
    assert shown.encode().decode().isprintable() or "\u200d" in shown or "\u200c" in shown
    assert not set(shown) & set("/\\\0\n\r\t\u202e\u2066")
    assert display_name(shown) == shown
