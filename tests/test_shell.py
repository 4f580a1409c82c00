"""The whole page as Gradio sees it: nothing public, nothing from elsewhere, nothing in the way."""

import re
from pathlib import Path

import pytest

from tests.ui_fakes import parts
from ui import shell
from ui.look import style_sheets

UI = Path(shell.__file__).parent


@pytest.fixture(scope="module")
def config():
    return shell.build_demo(parts()).get_config_file()


def test_the_pages_stand_in_this_order(config):
    tabs = [c["props"] for c in config["components"] if c["type"] == "tabitem"]
    assert [tab["id"] for tab in tabs] == ["chat", "compare", "ways", "documents"]


def test_no_event_is_an_endpoint_for_programs(config):
    assert {d["api_visibility"] for d in config["dependencies"]} == {"private"}


def test_only_answers_wait_for_answers():
    demo = shell.build_demo(parts())
    groups: dict[str, set[str]] = {}
    for fn in demo.fns.values():
        groups.setdefault(str(fn.concurrency_id), set()).add(fn.fn.__name__)
    assert groups.pop("generation") <= {"_on_ask", "_on_retry", "compare", "on_run"}
    assert all(fn.concurrency_limit != 1 for fn in demo.fns.values())


def test_styles_and_scripts_name_no_other_host():
    options = shell.launch_options()
    served = options["theme"]._get_theme_css() + options["js"]
    served += "".join(path.read_text(encoding="utf-8") for path in style_sheets())
    assert not re.findall(r"https?://(?!www\.w3\.org/)|url\((?!['\"]?data:)|@import", served)
    assert options["theme"]._stylesheets == []


def test_what_must_be_off_is_off():
    options = shell.launch_options()
    for name in ("share", "ssr_mode", "run_history", "enable_monitoring"):
        assert options[name] is False
    assert options["max_file_size"] == "50mb"


def test_every_colour_stands_in_the_theme_and_only_there():
    named = set(re.findall(r"(--[\w-]+):", (UI / "theme.css").read_text(encoding="utf-8")))
    for path in UI.glob("*_view.py"):  # what a view sets on one element
        named |= set(re.findall(r"(--[\w-]+):", path.read_text(encoding="utf-8")))
    for path in style_sheets()[1:]:
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r": [^;{]*(?:#[0-9a-fA-F]{3,8}\b|\brgb|\bhsl)", text), path.name
        here = set(re.findall(r"(--[\w-]+):", text))
        assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= named | here, path.name


def test_the_dark_theme_changes_every_colour():
    theme = (UI / "theme.css").read_text(encoding="utf-8")
    light, dark = theme.split(":root.dark")
    colours = set(re.findall(r"(--[\w-]+): (?:#|rgb)", light))
    assert colours <= set(re.findall(r"(--[\w-]+): ", dark))
