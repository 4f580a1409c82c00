"""Text recognition (OCR) by the tesseract program, where it is installed.

A picture goes in and lines come out over pipes: nothing is written to disk. Does not know where
pictures come from.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from rag.readers.hocr import RecognisedPage, read_hocr

LANGUAGES = ("eng", "chi_sim")  # those of the page; others only where none of these is installed
_MOST_OTHERS = 3  # each language costs time on every page
_NO_LANGUAGES = ("osd", "equ", "snum")
_COLUMNS, _ANY_DIRECTION = "3", "1"  # ways to find text: upright, or turned as well
_WORTH = 0.9  # of the first look's confidence: then the second, which knows more, is taken
HARDLY_READ = 60.0  # percent of confidence, under which a page may lie on its side


class RecognitionError(Exception):
    """The program failed on a picture, or took too long."""


@dataclass(frozen=True)
class Tesseract:
    """The installed program. `languages` are its names for them, never empty."""

    path: str
    languages: tuple[str, ...]
    can_turn: bool  # whether it can find out that a page lies on its side

    def recognise(self, image: bytes, dpi: float, seconds: float) -> list[RecognisedPage]:
        """The pages of one picture file (most have one), upright first, else any way round.

        Raises RecognitionError, also when one look took longer than `seconds`.
        """
        pages = self._look(image, dpi, seconds, _COLUMNS)
        if len(pages) != 1 or not self.can_turn:
            return pages
        if pages[0].confidence >= HARDLY_READ and not pages[0].sideways:
            return pages
        turned = self._look(image, dpi, seconds, _ANY_DIRECTION)
        return turned if turned and turned[0].confidence > _WORTH * pages[0].confidence else pages

    def _look(self, image: bytes, dpi: float, seconds: float, mode: str) -> list[RecognisedPage]:
        languages = "+".join(self.languages)
        options = ["-l", languages, "--psm", mode, "--dpi", str(min(2400, max(70, round(dpi))))]
        try:
            done = subprocess.run(
                [self.path, "stdin", "stdout", *options, "hocr"],
                input=image,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=max(0.1, seconds),
                env=_environment(),
                check=True,
            )
            return read_hocr(done.stdout, dpi)
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            raise RecognitionError from error


def find_tesseract() -> Tesseract | None:
    """The program with the languages to use; None where either is missing."""
    path = shutil.which("tesseract")
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--list-langs"], capture_output=True, text=True, timeout=20, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return None
    installed = done.stdout.splitlines()[1:]  # the first line is a heading
    languages = choose_languages(installed)
    return Tesseract(path, languages, "osd" in installed) if languages else None


def choose_languages(installed: list[str]) -> tuple[str, ...]:
    """Of tesseract's installed languages those to look for, the page's own before others."""
    ours = tuple(language for language in LANGUAGES if language in installed)
    others = [name for name in installed if name not in _NO_LANGUAGES and "/" not in name]
    return ours or tuple(others[:_MOST_OTHERS])


def _environment() -> dict[str, str]:
    """One thread: more of them make it slower on pages of ordinary size."""
    return os.environ | {"OMP_THREAD_LIMIT": "1"}
