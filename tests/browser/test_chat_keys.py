"""The chat page by keyboard and by dropped files, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import ANSWER_MS

QUESTION = "#question textarea"
DROP = """(text) => {
  const files = new DataTransfer();
  files.items.add(new File([text], "租约 (1).md", { type: "text/markdown" }));
  const event = { bubbles: true, cancelable: true, dataTransfer: files };
  document.querySelector("#question textarea").dispatchEvent(new DragEvent("drop", event));
}"""
LEASE = "# Moving out\n\nThe notice period is three months to the end of a quarter.\n"


def test_the_first_tab_stop_skips_to_the_question(page):
    page.keyboard.press("Tab")
    expect(page.locator("a.skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(QUESTION)).to_be_focused()


def test_shift_enter_breaks_the_line(page):
    page.fill(QUESTION, "one")
    page.press(QUESTION, "Shift+Enter")
    page.keyboard.type("two")
    assert page.input_value(QUESTION) == "one\ntwo"
    expect(page.locator(".turn")).to_have_count(0)


def test_a_panel_opens_takes_the_focus_and_gives_it_back(page):
    chip = page.locator(".chip-decoding")
    chip.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel-decoding")).to_be_visible()
    expect(chip).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#panel-decoding")).to_be_hidden()
    expect(chip).to_be_focused()


def test_a_preset_shows_its_numbers_on_the_chip(page):
    page.click(".chip-decoding")
    page.click("#panel-decoding label:has-text('Balanced')")
    expect(page.locator(".chip-decoding")).to_have_text("Balanced · T 0.7 · top-p 0.9")


def test_light_and_dark_are_remembered(page):
    page.click("[data-theme]")
    expect(page.locator("html")).to_have_class(re.compile("dark"))
    page.reload()
    page.wait_for_selector(QUESTION)
    expect(page.locator("html")).to_have_class(re.compile("dark"))


def test_a_dropped_file_is_answered_from_and_a_citation_points_at_its_passage(page):
    page.evaluate(DROP, LEASE)
    expect(page.locator("#upload-progress")).to_contain_text(
        re.compile("added|already here"), timeout=ANSWER_MS
    )
    expect(page.locator("#rail-documents")).to_contain_text("租约 (1).md")
    page.fill(QUESTION, "How long is the notice period?")
    page.press(QUESTION, "Enter")
    expect(page.locator(QUESTION)).to_have_value("")
    expect(page.locator("#live .ending [data-act=retry]")).to_be_visible(timeout=ANSWER_MS)
    citation = page.locator("#live .cite").first
    citation.focus()
    page.keyboard.press("Enter")
    passage = page.locator("#passages .passage[data-passage='1']")
    expect(passage).to_be_focused()
    expect(passage.locator("mark").first).to_contain_text("three months")
