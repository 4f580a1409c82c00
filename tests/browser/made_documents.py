"""Documents made for the tests: a Chinese PDF, an English docx, and ones with markup in them."""

from __future__ import annotations

from pathlib import Path

import docx
from reportlab.lib.pagesizes import A5
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

CHINESE = (
    ("灯塔守护人手册", "北礁灯塔建于一九二三年，塔高四十一米。", "灯塔的守护人名叫沈静澜。"),
    ("日常规程", "每天傍晚六点零七分点亮主灯。", "备用发电机的密码写在蓝色铁盒里。"),
)
ENGLISH = (
    ("Orchard Rules", "The Ashgrove orchard was planted in 1911 by Petra Lindqvist."),
    ("Harvest", "The Ashgrove harvest begins on the second Tuesday of September."),
)


def chinese_pdf(folder: Path) -> Path:
    """Two pages of Chinese text, one fact a line."""
    path = folder / "灯塔手册.pdf"
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    canvas = Canvas(str(path), pagesize=A5)
    for lines in CHINESE:
        for row, line in enumerate(lines):
            canvas.setFont("STSong-Light", 14)
            canvas.drawString(40, 540 - 30 * row, line)
        canvas.showPage()
    canvas.save()
    return path


def english_docx(folder: Path) -> Path:
    path = folder / "orchard rules.docx"
    document = docx.Document()
    for heading, text in ENGLISH:
        document.add_heading(heading)
        document.add_paragraph(text)
    document.save(str(path))
    return path


def text_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
