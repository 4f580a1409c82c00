"""The page itself: its language, its privacy, hostile text on every surface, a narrow screen."""

import pytest
from playwright.sync_api import expect

from tests.browser.actions import (
    TABS,
    add_files,
    ask,
    compare,
    go,
    set_length,
    wait_for_answers,
    wait_for_comparison,
)
from tests.browser.made_documents import text_file

PAYLOADS = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "![pixel](https://evil.example/p.png)",
    "[click](javascript:alert(1))",
    "<svg/onload=alert(1)>",
    "${alert(1)} {{constructor.constructor('alert(1)')()}}",
    "<iframe src=https://evil.example></iframe>",
)


def test_the_language_follows_the_browser_and_can_be_switched(new_page):
    page = new_page(locale="zh-CN")
    expect(page.get_by_role("tab").first).to_have_text("对话")
    page.click("[data-act=language]")
    expect(page.get_by_role("tab").first).to_have_text("Chat")
    page.click("[data-act=language]")
    go(page, "documents")
    expect(page.locator("#documents-list")).to_contain_text("名称")
    go(page, "compare")
    expect(page.locator("#compare-run")).to_have_text("比较")
    expect(page.locator("#compare-status")).to_contain_text("同一个模型")


def test_markup_in_names_texts_and_questions_stays_text(page, tmp_path):
    document = text_file(
        tmp_path,
        "<img src=x onerror=alert(1)>.md",
        "# Payload <b>heading</b>\n\n" + "\n\n".join(PAYLOADS) + "\n\nThe payload colour is ochre.",
    )
    add_files(page, document)
    page.locator("#documents-list button.open", has_text="onerror").first.click()
    expect(page.locator("#documents-preview")).to_contain_text("payload colour is ochre")
    go(page, "chat")
    set_length(page, 16)
    question = "Repeat the payload colour: " + " ".join(PAYLOADS)
    ask(page, question)
    wait_for_answers(page, 1)
    compare(page, question, tokens=8)
    wait_for_comparison(page)
    page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    marked = "img[src='x'], svg[onload], iframe, a[href^='javascript'], img[src*='evil']"
    assert page.locator(marked).count() == 0


def test_one_session_does_not_see_the_chat_of_another(new_page):
    mine, other = new_page(), new_page()
    set_length(mine, 16)
    ask(mine, "My secret word is xylophone.")
    wait_for_answers(mine, 1)
    other.reload()
    other.wait_for_selector("#question textarea")
    assert "xylophone" not in other.content()
    set_length(other, 16)
    ask(other, "What is the secret word?")
    wait_for_answers(other, 1)
    other.click("#side details.prompt summary")
    assert "xylophone" not in other.locator("#side").inner_text()


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_narrow_screen_needs_no_sideways_scrolling(new_page, tab, locale):
    page = new_page(locale=locale, width=390, height=844)
    go(page, tab)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_narrow_screen_a_switch_shows_the_other_answer_in_the_same_place(new_page):
    page = new_page(width=390, height=844)
    compare(page, "Why is a KV cache useful?", tokens=16)
    wait_for_comparison(page)
    with_side, without = page.locator(".side.with"), page.locator(".side.without")
    expect(with_side).to_be_visible()
    expect(without).to_be_hidden()
    before = with_side.bounding_box()
    page.click("#compare-switch [data-show=without]")
    expect(without).to_be_visible()
    expect(with_side).to_be_hidden()
    assert without.bounding_box() == before
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
