"""rag.sandbox: hostile files cost one child and an error message (THREATS T6)."""

import io
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import psutil
import pytest
from reportlab.pdfgen.canvas import Canvas

from rag.documents import Document, DocumentError, Limits, load_document
from rag.sandbox import parse_in_sandbox

MEGABYTE = 2**20


def code_of(path: Path, **options: object) -> str:
    with pytest.raises(DocumentError) as error:
        parse_in_sandbox(path, **options)  # type: ignore[arg-type]
    assert error.value.message.endswith(".")
    assert psutil.Process().children() == []
    return error.value.code


def long_pdf(path: Path, pages: int) -> Path:
    canvas = Canvas(str(path))
    for number in range(pages):
        for row in range(40):
            canvas.drawString(
                72, 780 - 18 * row, f"Page {number}, row {row} of a long table of rows"
            )
        canvas.showPage()
    canvas.save()
    return path


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PDF that takes seconds to read."""
    return long_pdf(tmp_path_factory.mktemp("slow") / "a.pdf", 300)


def test_the_child_reads_what_the_parent_would(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# 标题\n\ntext 😀\n")
    (tmp_path / "a.html").write_text("<html><h1>A</h1><p>b")
    (tmp_path / "a.txt").write_bytes("你好，世界。".encode("gbk"))
    docx.Document().save(tmp_path / "empty.docx")
    word = docx.Document()
    word.add_heading("A")
    word.save(tmp_path / "a.docx")
    long_pdf(tmp_path / "a.pdf", 2)
    for name in ("a.md", "a.html", "a.txt", "a.docx", "a.pdf"):
        assert parse_in_sandbox(tmp_path / name) == load_document(tmp_path / name)
    assert code_of(tmp_path / "empty.docx") == "no_text"


def test_names_of_any_kind_reach_the_child_as_data(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    for name in ("a\0b.txt", "caf\udce9.txt", '"; rm -rf /.md', "长" * 300 + ".txt"):
        expected = load_document(tmp_path / "a", name)
        assert parse_in_sandbox(tmp_path / "a", name) == expected


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        assert code_of(path) == "unsupported"
    with pytest.raises(FileNotFoundError):
        parse_in_sandbox(tmp_path / "missing")


def test_the_child_imports_neither_network_nor_models() -> None:
    code = (
        "import rag.sandbox, rag.readers.pdf, rag.readers.docx, rag.readers.html, sys;"
        "import charset_normalizer; print(*sys.modules)"
    )
    root = Path(__file__).parents[1]
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    banned = {"socket", "ssl", "http.client", "urllib.request", "torch", "numpy", "faiss", "gradio"}
    assert not banned & set(output.split())


def test_progress_is_reported_by_page(tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    long_pdf(tmp_path / "a.pdf", 5)
    parse_in_sandbox(tmp_path / "a.pdf", progress=lambda *report: reports.append(report))
    assert [(done, total) for _, done, total in reports] == [(n, 5) for n in range(1, 6)]


def test_a_parser_that_does_not_end_is_stopped(slow: Path) -> None:
    begin = time.monotonic()
    assert code_of(slow, limits=Limits(seconds=0.7)) == "timeout"
    assert time.monotonic() - begin < 5


def test_the_processor_time_of_a_child_is_limited_even_if_nobody_waits(slow: Path) -> None:
    arguments = '["a.pdf", {"seconds": 0.2}]'
    with open(slow, "rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "rag.sandbox", arguments],
            stdin=file,
            stdout=subprocess.DEVNULL,
            cwd=Path(__file__).parents[1],
            check=False,
        )
    assert done.returncode == -signal.SIGXCPU


def test_reading_can_be_cancelled_at_any_time(slow: Path) -> None:
    assert code_of(slow, should_stop=lambda: True) == "cancelled"
    pages: list[int] = []
    begin = time.monotonic()
    code = code_of(
        slow,
        should_stop=lambda: len(pages) >= 3,
        progress=lambda label, done, total: pages.append(done),
    )
    assert code == "cancelled"
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("sign", "code"), [(signal.SIGKILL, "too_much_memory"), (signal.SIGSEGV, "crashed")]
)
def test_a_child_that_is_killed_or_crashes_gives_an_error(
    slow: Path, sign: signal.Signals, code: str
) -> None:
    def kill(label: str, done: int, total: int) -> None:
        if done == 1:
            psutil.Process().children()[0].send_signal(sign)

    assert code_of(slow, progress=kill) == code


def test_a_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>a <b>b</b></p>" * 80_000)
    limits = Limits(memory_bytes=100 * MEGABYTE)
    assert code_of(tmp_path / "a.html", limits=limits) == "too_much_memory"


def zip_bomb(path: Path) -> None:
    docx.Document().save(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image.bmp", bytes(100 * MEGABYTE))


def entity_bomb(path: Path) -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    path.write_text(f'<!DOCTYPE html [<!ENTITY a0 "ha">{entities}]><html><p>&a9;</p></html>')


def flate_bomb(path: Path) -> None:
    import zlib

    once = zlib.compress(b" " * (150 * MEGABYTE), 9)
    stream = zlib.compress(once, 9)
    body = (
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/Resources<</Font<<>>>>/Contents 4 0 R>>endobj\n"
        b"4 0 obj<</Filter[/FlateDecode/FlateDecode]/Length %d>>stream\n" % len(stream)
    )
    path.write_bytes(
        body + stream + b"\nendstream endobj\ntrailer<</Root 1 0 R/Size 5>>\nstartxref\n0\n%%EOF"
    )


def page_tree_bomb(path: Path) -> None:
    """Sixty levels of page trees, each of which holds the next one ten times."""
    levels = b"".join(
        b"%d 0 obj<</Type/Pages/Count 1000/Kids[%s]>>endobj\n"
        % (n, b" ".join([b"%d 0 R" % (n + 1)] * 10))
        for n in range(2, 60)
    )
    path.write_bytes(
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        + levels
        + b"60 0 obj<</Type/Page>>endobj\ntrailer<</Root 1 0 R/Size 61>>\nstartxref\n0\n%%EOF"
    )


def deep_array(path: Path) -> None:
    path.write_bytes(
        b"%PDF-1.4\n1 0 obj"
        + b"[" * 2_000_000
        + b"endobj\ntrailer<</Root 1 0 R>>\nstartxref\n9\n%%EOF"
    )


def junk(path: Path) -> None:
    path.write_bytes(b"%PDF-1.7\n" + random.Random(1).randbytes(5 * MEGABYTE) + b"startxref\n%%EOF")


@pytest.mark.parametrize(
    "bomb", [zip_bomb, entity_bomb, flate_bomb, page_tree_bomb, deep_array, junk]
)
def test_a_bomb_gives_a_clear_error_and_leaves_the_server_small(
    tmp_path: Path, bomb: Callable[[Path], None]
) -> None:
    suffix = {zip_bomb: ".docx", entity_bomb: ".html"}.get(bomb, ".pdf")
    path = tmp_path / f"bomb{suffix}"
    bomb(path)
    before = psutil.Process().memory_info().rss
    code = code_of(path, limits=Limits(seconds=20))
    assert code in ("archive_bomb", "unsafe", "damaged", "too_much_memory", "no_text")
    assert psutil.Process().memory_info().rss - before < 50 * MEGABYTE


def test_a_document_at_the_limit_of_text_comes_through_and_one_above_does_not(
    tmp_path: Path,
) -> None:
    limits = Limits()
    text = "汉字 and text.\n" * (limits.text_bytes // 17)
    text += "x" * (limits.text_bytes - len(text.encode()))
    (tmp_path / "a.txt").write_text(text)
    before = psutil.Process().memory_info().rss
    assert parse_in_sandbox(tmp_path / "a.txt").text == text
    assert psutil.Process().memory_info().rss - before < 200 * MEGABYTE
    (tmp_path / "a.txt").write_text(text + "x")
    assert code_of(tmp_path / "a.txt") == "too_much_text"


def test_many_headings_come_through(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# a\n## b\n" * 50_000)
    document: Document = parse_in_sandbox(tmp_path / "a.md")
    assert document.sections[-1].end == len(document.text)


def test_an_answer_that_no_child_of_ours_gives_is_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("text")
    answers = (b"", b"\0\0", b"\xff\xff\xff\xff", b"\0\0\0\2{]", b'\0\0\0\x0f{"document":{}}')
    real = subprocess.Popen
    for answer in answers:
        script = f"import os, time; os.write(1, {answer!r}); os.close(1); time.sleep(9)"
        monkeypatch.setattr(
            subprocess,
            "Popen",
            lambda command, script=script, **options: real(
                [sys.executable, "-c", script], **options
            ),
        )
        with pytest.raises(DocumentError) as error:
            parse_in_sandbox(tmp_path / "a.txt")
        assert error.value.code == "crashed"


def test_a_library_that_prints_does_not_garble_the_answer(tmp_path: Path) -> None:
    script = (
        "import rag.sandbox as s, rag.documents as d, sys; real = s.load_stream;"
        "s.load_stream = lambda *a: (print('noise'), real(*a))[1]; s.main('[\"a.txt\", {}]')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=b"text",
        capture_output=True,
        cwd=Path(__file__).parents[1],
        check=True,
    )
    assert done.stdout[4:].startswith(b'{"document"')
    assert b"noise" in done.stderr
    assert io.BytesIO(done.stdout).read(4) == (len(done.stdout) - 4).to_bytes(4, "big")
