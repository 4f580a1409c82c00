"""The panel of all decoding options, in a real browser: what is chosen is what is done and said."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.actions import ask, set_length, wait_for_answers


def open_options(page) -> None:
    page.click("[data-panel=decoding]")
    page.click("#panel-decoding .all-options > button")


def choose(page, value: str) -> None:
    page.locator(f"#panel-decoding input[type=radio][value={value}]").check()


def test_a_method_is_chosen_named_in_the_chip_and_under_the_answer(page):
    set_length(page, 16)
    open_options(page)
    choose(page, "contrastive")
    expect(page.locator(".chip-decoding")).to_contain_text("contrastive search")
    expect(page.locator("#panel-decoding").get_by_label("Candidates (k)").first).to_be_visible()
    page.keyboard.press("Escape")
    ask(page, "What is a KV cache?")
    wait_for_answers(page, 1)
    expect(page.locator(".ending")).to_contain_text("contrastive search")


def test_what_cannot_be_combined_is_said_while_it_is_chosen(page):
    open_options(page)
    choose(page, "contrastive")
    choose(page, "balanced")
    problem = page.locator("#panel-decoding .panel-problem .problem")
    expect(problem).to_contain_text("temperature")
    choose(page, "plain")
    expect(problem).to_have_count(0)
