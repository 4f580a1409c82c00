"""A value of a spreadsheet cell to the text that a person sees in it.

Numbers follow the cell's format: decimals, thousands, percent, currency, a sign or parentheses.
Dates and times are written in ISO order whatever the format, since 03/04 means different days to
different people. Fractions, conditions and formats that split a number are shown as plain numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)  # enough digits for any double
_PIECE = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?P<option>[^\]]*)\]|(?P<digits>[0#?.,]+)|(?P<exponent>E[+-]0+)|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)
_SECTION = re.compile(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\])+|(?<=;)(?=;|$)|^(?=;)', re.DOTALL)

_CORRECTED = {  # what openpyxl gives for the built-in accounting format lacks its semicolons
    r'_("$"* #,##0.00_)_("$"* \(#,##0.00\)_("$"* "-"??_)_(@_)': (
        r'_("$"* #,##0.00_);_("$"* \(#,##0.00\);_("$"* "-"??_);_(@_)'
    )
}


@dataclass(frozen=True)
class _Pattern:
    """One section of a number format; `digits` is None if it shows a number as it is."""

    before: str = ""
    digits: str | None = None
    after: str = ""
    exponent: bool = False


def shown(value: object, number_format: str | None = None) -> str:
    """The text of a cell's value.

    Args:
        value: what a workbook holds: text, number, truth value, date, time, duration or None.
        number_format: the cell's format code, such as ``#,##0.00`` or ``0%;[Red]-0%``.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return _number(value, number_format or "General")
    if isinstance(value, datetime):
        whole = value.replace(microsecond=0)
        has_time = whole.time() != time() or "h" in (number_format or "").lower()
        return f"{whole.date()} {_clock(whole.time())}" if has_time else str(whole.date())
    if isinstance(value, date):
        return str(value)
    if isinstance(value, time):
        return _clock(value)
    if isinstance(value, timedelta):
        seconds = round(value.total_seconds())
        minutes, second = divmod(abs(seconds), 60)
        return f"{'-' * (seconds < 0)}{minutes // 60}:{minutes % 60:02}:{second:02}"
    return str(value)


def _clock(value: time) -> str:
    return f"{value:%H:%M:%S}" if value.second else f"{value:%H:%M}"


def _number(value: float, number_format: str) -> str:
    if value in (float("inf"), float("-inf")) or value != value:
        return str(value)
    sections = _sections(number_format)
    pattern = sections[0]
    negative = value < 0
    if negative and len(sections) > 1:
        pattern, negative = sections[1], False
    elif value == 0 and len(sections) > 2:
        pattern = sections[2]
    number = _plain(abs(value)) if pattern.digits is None else _formatted(abs(value), pattern)
    sign = "-" if negative and number.strip("0.,") else ""
    return f"{sign}{pattern.before}{number}{pattern.after}".strip()


@lru_cache(maxsize=512)
def _sections(number_format: str) -> tuple[_Pattern, ...]:
    """The patterns for positive numbers, negative ones and zero, as far as there are."""
    number_format = _CORRECTED.get(number_format, number_format)
    sections = [match[0] for match in _SECTION.finditer(number_format)][:3]
    return tuple(map(_pattern, sections)) or (_Pattern(),)


def _pattern(section: str) -> _Pattern:
    if section.strip().lower() in ("general", "@") or re.search(r"\[[<>=]", section):
        return _Pattern()
    before = after = ""
    digits: str | None = None
    exponent = False
    for match in _PIECE.finditer(section):
        if match["digits"] and match["digits"] != "," and not after.strip("%"):
            if digits is not None:  # fractions, telephone numbers
                return _Pattern()
            digits = match["digits"]
        elif match["exponent"]:
            exponent = True
        elif match["digits"]:
            return _Pattern()
        else:
            text = match["quoted"] or match["escaped"] or match["currency"] or match["literal"]
            if digits is None:
                before += text or ""
            else:
                after += text or ""
    if digits is None:
        return _Pattern(before, "") if before or not section else _Pattern()
    return _Pattern(before, digits, after, exponent)


def _plain(value: float) -> str:
    """A number as it would be typed: no more digits than a double holds for sure."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and value < 1e15:
        return str(int(value))
    return f"{value:.15g}".replace("e", "E")


def _formatted(value: float, pattern: _Pattern) -> str:
    whole, _, decimals = (pattern.digits or "").partition(".")
    places = sum(decimals.count(mark) for mark in "0#?")
    if pattern.exponent:
        return f"{value:.{min(places, 20)}E}"
    if not whole and not places:
        return ""
    number = Decimal(repr(value))
    number *= 100 ** (pattern.before + pattern.after).count("%")
    number /= 1000 ** (len(whole) - len(whole.rstrip(",")))
    number = number.quantize(Decimal(1).scaleb(-min(places, 30)), context=_EXACT)
    units, _, fraction = f"{number:f}".partition(".")
    least = decimals.count("0")
    fraction = fraction[:least] + fraction[least:].rstrip("0")
    units = units.lstrip("0").rjust(min(whole.count("0"), 30), "0")
    if "," in whole.rstrip(",") and units.isdecimal():
        units = f"{int(units):,}".rjust(len(units), "0") if units[0] != "0" else units
    return f"{units}.{fraction}" if fraction else units
