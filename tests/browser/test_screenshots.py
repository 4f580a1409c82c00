"""The pictures of the README, taken when GLASSBOX_SCREENSHOTS names a folder."""

import os
from pathlib import Path

import pytest

from tests.browser.actions import ask, compare, go, wait_for_answers, wait_for_comparison

FOLDER = os.environ.get("GLASSBOX_SCREENSHOTS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="GLASSBOX_SCREENSHOTS is not set")


@pytest.fixture
def shoot():
    folder = Path(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=folder / f"{name}.png")


def test_chat(page, shoot):
    ask(page, "What is stored in the KV cache?")
    wait_for_answers(page, 1)
    ask(page, "What does teacher forcing mean for a language model?")
    wait_for_answers(page, 2)
    shoot(page, "chat")


def test_compare(page, shoot):
    compare(page, "What is stored in the KV cache?", tokens=96)
    wait_for_comparison(page)
    shoot(page, "compare")


def test_documents(page, shoot):
    go(page, "documents")
    page.locator("#documents-list button.open").first.click()
    page.wait_for_selector("#documents-preview .passage")
    shoot(page, "documents")


def test_compare_in_chinese_on_a_phone_in_the_dark(new_page, shoot):
    page = new_page(locale="zh-CN", width=390, height=844, color_scheme="dark")
    compare(page, "教师强制是什么意思？", tokens=96)
    wait_for_comparison(page)
    shoot(page, "compare-phone-dark-zh")
