"""Options and explanation of retrieval, in a real browser: what is chosen is what is done."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.actions import ask, go, set_length, wait_for_answers

WORDS = {
    "en": ("en-US", "Searched for:", "What is the KV cache?", "How much memory does it take?"),
    "zh": ("zh-CN", "检索的是：", "什么是键值缓存？", "它占多少内存？"),
}


def ask_twice(page, first: str, second: str) -> None:
    set_length_in_any_language(page)
    ask(page, first)
    wait_for_answers(page, 1)
    ask(page, second)
    wait_for_answers(page, 2)


def set_length_in_any_language(page) -> None:
    page.click("[data-panel=decoding]")
    field = page.locator("#panel-decoding input[type=number]").nth(4)
    field.fill("16")
    field.press("Tab")
    page.keyboard.press("Escape")


@pytest.mark.parametrize("language", WORDS)
def test_a_follow_up_says_what_was_searched_for_and_why_these_passages(new_page, language):
    locale, searched, first, second = WORDS[language]
    page = new_page(locale=locale)
    ask_twice(page, first, second)
    box = page.locator("#passages .searched")
    expect(box).to_contain_text(searched)
    expect(box.locator("q")).to_have_text(f"{first} {second}")
    expect(page.locator(".bubble").last).to_have_text(second)
    page.click("#passages .why > summary")
    expect(page.locator("#passages .why tbody").first).to_be_visible()
    expect(page.locator("#passages .why dt")).not_to_have_count(0)


def test_completing_questions_is_switched_off_where_it_is_shown(page):
    set_length(page, 16)
    page.click(".chip-retrieval")
    page.locator("#panel-retrieval input[type=radio][value=off]").check()
    page.keyboard.press("Escape")
    ask(page, "What is the KV cache?")
    wait_for_answers(page, 1)
    ask(page, "How much memory does it take?")
    wait_for_answers(page, 2)
    expect(page.locator("#passages .searched")).to_have_count(0)


def test_only_the_chosen_document_is_searched(page):
    set_length(page, 16)
    page.click("[data-panel=documents]")
    page.fill("#panel-documents input", "history.en")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator(".chip-documents")).to_contain_text("1 document")
    ask(page, "When was GPT-2 announced?")
    wait_for_answers(page, 1)
    names = page.locator("#passages .passage .name")
    expect(names.first).to_have_text("history.en.md")
    assert set(names.all_inner_texts()) == {"history.en.md"}


@pytest.mark.parametrize("width", [390, 1440])
def test_the_list_of_documents_leaves_the_page_in_sight(new_page, width):
    page = new_page(width=width)
    page.click("[data-panel=documents]")
    shown = page.locator("#panel-documents .options")
    expect(shown).to_be_visible()
    box = shown.bounding_box()
    assert box["height"] <= 322  # 320 and its border
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    page.locator("#panel-documents [role=option]").last.scroll_into_view_if_needed()
    expect(page.locator("#panel-documents [role=option]").last).to_be_in_viewport()


def test_the_comparison_and_the_four_ways_have_the_options_too(page):
    for tab, form in (("compare", "#compare-form"), ("ways", "#ways-form")):
        go(page, tab)
        page.locator(f"{form} .all-options > button").first.click()
        expect(page.locator(form).get_by_label("Diversity").first).to_be_visible()
