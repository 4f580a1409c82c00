"""Every word on the page comes from the string tables, and both tables say the same things."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

from ui.i18n import LANGUAGES, Words, choose_language, h, strings, t

UI = Path(__file__).resolve().parents[1] / "ui"
FOR_PROGRAMS = ("cli", "http")  # these speak to terminals and programs
SOURCES = sorted(p for p in UI.glob("*.py") if not p.name.startswith(FOR_PROGRAMS))
WORD = re.compile(r"[A-Za-z]{2,}|[\u4e00-\u9fff]")
SAME_EVERYWHERE = {"Glassbox"}
SEEN_BY_PEOPLE = {"label", "placeholder", "info", "title"}  # arguments of Gradio components


def slots(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys():
    assert set(strings("en")) == set(strings("zh"))


def test_a_text_has_the_same_slots_in_both_languages_and_is_not_empty():
    english, chinese = strings("en"), strings("zh")
    assert not [key for key in english if slots(english[key]) != slots(chinese[key])]
    assert all(key.removesuffix("_one") in english for key in english)
    assert all(text.strip() for text in (*english.values(), *chinese.values()))


def visible_literals(path: Path):
    """Text between tags of HTML in the source, and what components are labelled with."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r">([^<>{}]*)</", node.value)
        elif isinstance(node, ast.JoinedStr):
            shape = "".join(p.value if isinstance(p, ast.Constant) else "\0" for p in node.values)
            yield from re.findall(r">([^<>]*)<", shape)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("gr."):
            seen = [k.value for k in node.keywords if k.arg in SEEN_BY_PEOPLE]
            yield from (v.value for v in seen if isinstance(v, ast.Constant) and v.value)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_no_words_stand_in_the_source(path):
    stray = {text.strip("\0 ") for text in visible_literals(path) if WORD.search(text)}
    assert stray <= SAME_EVERYWHERE


def keys_in_the_source() -> tuple[set[str], set[str]]:
    """Whole keys, and the fixed beginnings of keys that are put together."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in UI.glob("*.py"))
    families = {key.split(".")[0] for key in strings("en")}
    whole = set(re.findall(r"[\"'](\w+\.\w+)[\"']", source))
    begun = set(re.findall(r"f[\"'](\w+\.\w*)\{", source))
    keys = {k for k in whole if k.split(".")[0] in families and not k.endswith(".css")}
    return keys - {"chat.completion"}, begun  # an object of the HTTP interface


def test_every_key_that_is_asked_for_exists():
    whole, begun = keys_in_the_source()
    assert whole <= set(strings("en"))
    assert all(any(key.startswith(b) for key in strings("en")) for b in begun)


def test_every_text_is_used():
    whole, begun = keys_in_the_source()
    made = {key for key in strings("en") if key.endswith((".tab", "_one"))}
    unused = set(strings("en")) - whole - made
    assert not {key for key in unused if not key.startswith(tuple(begun))}


@pytest.mark.parametrize(
    ("header", "chosen", "language"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", None, "zh"),
        ("fr,en;q=0.2,zh;q=0.1", None, "en"),
        ("fr", None, "en"),
        (None, None, "en"),
        ("", None, "en"),
        ("zh;q=0,en;q=0.1", None, "en"),
        ("zh;q=rubbish", None, "en"),
        ("en", "zh", "zh"),
        ("zh", "../etc", "zh"),
    ],
)
def test_the_browser_chooses_the_language_unless_the_person_did(header, chosen, language):
    assert choose_language(header, chosen) == language


def test_an_unknown_language_falls_back_to_english():
    assert t("tlh", "chat.send") == t("en", "chat.send")


def test_one_is_said_as_one():
    assert t("en", "rail.passages", count=1) == "1 passage"
    for key in ("documents.warnings", "documents.size", "compare.passages"):
        assert not t("en", key, count=1).endswith("s")
    assert t("en", "rail.passages", count=2) == "2 passages"


def test_what_is_filled_in_is_escaped():
    assert "<img" not in h("en", "upload.reading", name="<img src=x>")


def test_words_relabel_their_components_in_order():
    class Component:
        label = placeholder = ""

    words = Words()
    first = words.add(Component(), label="chat.send")
    second = words.add(Component(), label="chat.stop", placeholder="chat.ask")
    assert words.components == [first, second]
    assert first.label == t("en", "chat.send")
    updates = words.updates("zh")
    assert updates[1]["placeholder"] == t("zh", "chat.ask")
    assert len(updates) == len(LANGUAGES) == 2
