"""Progress on a terminal is one line, in a log a line for each label."""

import io

from ui.terminal import ProgressLine, progress_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_gets_each_label_once():
    stream = io.StringIO()
    progress = ProgressLine(stream)
    for done in range(5):
        progress("Reading a.pdf", done, 5)
    progress("Embedding a.pdf", 0, 5)
    progress.close()
    assert stream.getvalue() == "Reading a.pdf\nEmbedding a.pdf\n"


def test_a_terminal_gets_one_line_that_is_gone_at_the_end():
    stream = Terminal()
    progress = ProgressLine(stream)
    progress("Reading a.pdf", 1, 4)
    progress("Reading a.pdf", 4, 4)
    progress.close()
    text = stream.getvalue()
    assert "\n" not in text
    assert "100 %" in text
    assert text.split("\r")[-2].strip() == ""


def test_a_long_label_is_said_once_in_full_and_drawn_by_its_beginning():
    stream = Terminal()
    label = "SmolLM2-135M-Instruct, 98 MB, Apache-2.0, kept in " + "/long" * 12
    progress = ProgressLine(stream)
    progress(label, 1, 100)
    progress(label, 100, 100)
    text = stream.getvalue()
    assert text.count(label) == 1
    assert all(len(line) <= 78 for line in text.split("\n")[1].split("\r"))


def test_a_label_cannot_move_the_cursor():
    assert "\x1b" not in progress_line("\x1b[2Jname", 1, 2)
    assert "\n" not in progress_line("a\nb", 1, 2)


def test_a_share_stays_between_0_and_100():
    assert "100 %" in progress_line("x", 9, 4)
    assert "  0 %" in progress_line("x", -1, 4)
    assert progress_line("x", 5, 0) == "x"
