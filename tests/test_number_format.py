"""rag.readers.number_format: what a person sees in a cell."""

import math
from datetime import date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.styles.numbers import BUILTIN_FORMATS

from rag.readers.number_format import shown


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.1 + 0.2, "General", "0.3"),
        (5, None, "5"),
        (5.0, "General", "5"),
        (-2.5, "General", "-2.5"),
        (123456789012, "General", "123456789012"),
        (1e20, "General", "1E+20"),
        (1 / 3, "0.00", "0.33"),
        (2.5, "0", "3"),
        (1.005, "0.00", "1.01"),
        (0.5, "#.##", ".5"),
        (3, "0.0#", "3.0"),
        (7, "000", "007"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (-1234.5, "#,##0.00", "-1,234.50"),
        (12_345_678, "#,##0,", "12,346"),
        (0.125, "0%", "13%"),
        (0.125, "0.0%", "12.5%"),
        (-0.05, "0%;[Red]-0%", "-5%"),
        (1234.5, '"$"#,##0.00', "$1,234.50"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (1234.5, "#,##0.00 [$€-407]", "1,234.50 €"),
        (88, "[$¥-804]#,##0", "¥88"),
        (-3, "#,##0_);(#,##0)", "(3)"),
        (0, BUILTIN_FORMATS[44], "$-"),
        (-3.5, BUILTIN_FORMATS[43], "(3.50)"),
        (5, '0 "kg"', "5 kg"),
        (5, "0\\ \\k\\g", "5 kg"),
        (12345, "0.00E+00", "1.23E+04"),
        (0.5, "# ?/?", "0.5"),
        (5551234, "000-0000", "5551234"),
        (7, "[>=10]0.0;0", "7"),
        (7, "@", "7"),
        (7, '"yes";"no";"none"', "yes"),
        (-7, '"yes";"no";"none"', "no"),
        (-0.001, "0.0", "0.0"),
        (7, ";;;", ""),
        (True, "General", "TRUE"),
        (math.inf, "0.00", "inf"),
        (None, "0.00", ""),
        ("text", "@", "text"),
    ],
)
def test_numbers_are_shown_as_in_the_cell(value: object, number_format: str, text: str) -> None:
    assert shown(value, number_format) == text


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (datetime(2024, 3, 4), "mm-dd-yy", "2024-03-04"),
        (datetime(2024, 3, 4), "m/d/yy h:mm", "2024-03-04 00:00"),
        (datetime(2024, 3, 4, 15, 6), "m/d/yy", "2024-03-04 15:06"),
        (datetime(2024, 3, 4, 15, 6, 7, 999), "General", "2024-03-04 15:06:07"),
        (date(2024, 3, 4), None, "2024-03-04"),
        (time(9, 30), "h:mm", "09:30"),
        (timedelta(hours=30, minutes=5), "[h]:mm:ss", "30:05:00"),
    ],
)
def test_dates_and_times_are_in_iso_order(value: object, number_format: str, text: str) -> None:
    assert shown(value, number_format) == text


@given(
    st.one_of(st.floats(), st.integers(-(10**30), 10**30)),
    st.one_of(st.sampled_from(list(BUILTIN_FORMATS.values())), st.text('0#?.,%E+-[]$"\\;_*/ @a')),
)
def test_no_format_of_any_number_is_an_error(value: float, number_format: str) -> None:
    shown(value, number_format)
