"""Progress as a person in front of a terminal, or a log, sees it."""

import io

from generation.progress import TerminalProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_line_is_redrawn_and_ends_when_complete():
    stream = Terminal()
    progress = TerminalProgress(stream, seconds_between_draws=0)
    for done in (0, 5, 10, 10):
        progress("Fetching", done, 10)
    assert stream.getvalue().split("\r\x1b[K")[1:] == [
        "  0% Fetching",
        " 50% Fetching",
        "100% Fetching\n",
    ]


def test_an_unfinished_line_is_ended_before_the_next_label():
    stream = Terminal()
    progress = TerminalProgress(stream)
    progress("First", 1, 10)
    progress("Second", 0, 0)
    assert stream.getvalue().endswith("First\n\r\x1b[KSecond")


def test_a_log_gets_one_line_a_label():
    stream = io.StringIO()
    progress = TerminalProgress(stream, seconds_between_draws=0)
    for done in range(11):
        progress("Fetching", done, 10)
    progress("Converting", 0, 3)
    assert stream.getvalue() == "Fetching\nConverting\n"
