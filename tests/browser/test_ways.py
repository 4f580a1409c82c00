"""Four ways to write, as a person sees them: four cards that fill up, figures, and the stop key."""

import pytest
from playwright.sync_api import expect

from tests.browser.actions import ANSWER_MS, TABS, go

CARDS = ("plain", "retrieved", "parallel", "template")


def write(page, question, tokens=8, template=None):
    go(page, "ways")
    page.fill("#ways-tokens input", str(tokens))
    page.fill("#ways-question textarea", question)
    if template is not None:
        page.fill("#ways-template textarea", template)
    page.click("#ways-run")


def test_a_question_is_written_in_four_ways_each_with_its_passes(page):
    write(page, "What is teacher forcing?", template="City: {{city|max_tokens=6}}.")
    status = page.locator("#ways-status")
    expect(status).to_contain_text("All four are written", timeout=ANSWER_MS)
    for card in CARDS:
        expect(page.locator(f".way.{card} .ending strong").last).to_contain_text("pass")
        expect(page.locator(f".way.{card}")).to_have_attribute("aria-busy", "false")
    expect(page.locator(".way.parallel .finding").last).to_contain_text("Compared token by token")
    assert page.locator(".iterations li").count() >= 2
    expect(page.locator(".way.template .ways-text")).to_contain_text("City:")
    expect(page.locator(".way.template .form-slot").first).not_to_be_empty()
    page.click("[data-act=language]")
    expect(page.locator(".way.plain h3")).to_contain_text("自回归")
    expect(page.locator("#ways-template textarea")).to_have_value("City: {{city|max_tokens=6}}.")


def test_escape_stops_and_a_bad_template_is_one_sentence(page):
    write(page, "What is a KV cache?", tokens=64)
    page.wait_for_selector(".way.plain .ways-text", timeout=ANSWER_MS)
    page.keyboard.press("Escape")
    expect(page.locator("#ways-status")).to_contain_text("Stopped by you", timeout=ANSWER_MS)
    write(page, "What is a KV cache?", template="no slot")
    expect(page.locator("#ways-status .problem")).to_contain_text("The template has no slot")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_is_never_wider_than_the_screen(new_page, width):
    page = new_page(locale="zh-CN", width=width, height=844)
    go(page, "ways")
    expect(page.locator("#ways-status")).to_contain_text("四种写法")
    assert page.input_value("#ways-template textarea").startswith("简短回答：")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_all_tabs_fit_on_a_narrow_screen(new_page):
    page = new_page(width=390, height=844)
    expect(page.get_by_role("tab")).to_have_count(len(TABS))
