"""The notation of forms: what is fixed text, what is a slot, and errors that say where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.template_syntax import Slot, TemplateError, parse_template


def test_fixed_text_and_slots_are_told_apart():
    template = parse_template(
        "Name: {{name}}\nPeriod: {{ period | max_tokens = 12 }}\nIn writing: "
        "{{written|choices=yes, no}}\nFrom {{start|max_tokens=9|regex=[0-9]{4}|a}}.\n"
    )
    assert template.before == ("Name: ", "\nPeriod: ", "\nIn writing: ", "\nFrom ")
    assert template.slots == (
        Slot("name"),
        Slot("period", max_tokens=12),
        Slot("written", choices=("yes", "no")),
        Slot("start", max_tokens=9, regex="[0-9]{4}|a"),
    )
    assert template.ending == ".\n"


@pytest.mark.parametrize(
    ("text", "before", "ending"),
    [
        ("a { b } {c} {{x}}", "a { b } {c} ", ""),
        (r"\{{not a slot}} {{x}}", "{{not a slot}} ", ""),
        (r"\{\{a\}\} {{x}}", "{{a}} ", ""),
        (r"C:\\{{x}}\\", "C:\\", "\\"),
        (r"a\nb {{x}}", r"a\nb ", ""),
        ("{{x}} }}", "", " }}"),
        ("一、{{x}}。", "一、", "。"),
        (r"{{x}}\}", "", "}"),
    ],
)
def test_braces_can_be_plain_text(text, before, ending):
    template = parse_template(text)
    assert (template.before, template.ending) == ((before,), ending)
    assert [slot.name for slot in template.slots] == ["x"]


def test_an_expression_may_end_with_braces_and_hold_bars():
    assert parse_template(r"{{x|regex=(a|b)\d{2}}} end").slots[0].regex == r"(a|b)\d{2}"
    assert parse_template(r"{{x|regex=\{a\}}}").slots[0].regex == r"\{a\}"


@given(st.text(alphabet="ab{}\\\n|= 一"), st.text(alphabet="ab{}\\\n|= 一"))
def test_any_text_can_be_fixed_text_when_it_is_escaped(before, ending):
    def escaped(text):
        return text.replace("\\", r"\\").replace("{", r"\{").replace("}", r"\}")

    template = parse_template(f"{escaped(before)}{{{{x}}}}{escaped(ending)}")
    assert template.before == (before,)
    assert template.ending == ending


@given(st.text(alphabet="ab{}\\|=,1 \n"))
def test_any_other_text_is_read_or_refused(text):
    try:
        parse_template(text)
    except TemplateError as error:
        check_sentence(str(error))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no slots", "no slot"),
        ("", "no slot"),
        (None, "is text"),
        ("a\n{{x", "Line 2"),
        ("a {{x\n}}", "does not close"),
        ("{{}}", "no name"),
        ("{{2x}}", "no name"),
        ("{{a b}}", "no name"),
        ("{{x|size=3}}", "size"),
        ("{{x|max_tokens}}", "max_tokens"),
        ("{{x|max_tokens=0}}", "whole number"),
        ("{{x|max_tokens=-1}}", "whole number"),
        ("{{x|max_tokens=many}}", "whole number"),
        ("{{x|max_tokens=1|max_tokens=2}}", "twice"),
        ("{{x|choices=}}", "empty"),
        ("{{x|choices=a,,b}}", "empty"),
        ("{{x|choices=a|regex=b}}", "keep one"),
        ("{{x}}{{y}}", "between x and y"),
        ("{{x}}\n{{x}}", "second slot x"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, words):
    with pytest.raises(TemplateError, match=words) as caught:
        parse_template(text)
    check_sentence(str(caught.value))


def check_sentence(message: str) -> None:
    assert message.endswith((".", "filled."))
    assert "\n" not in message
