"""What a person does on the page, as functions: go somewhere, add files, ask, compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, expect

ANSWER_MS = 240_000  # a busy CI machine writes a few tokens a second
UPLOAD_MS = 120_000
TABS = ("chat", "compare", "ways", "documents")


def go(page: Page, tab: str) -> None:
    """To a page by its tab, which may be under "more" on a narrow screen."""
    button = page.locator(f"#page-{tab}-button")
    if not button.count():
        page.wait_for_timeout(1000)  # until the language is known, and with it the tabs' widths
    if not button.count():
        shown = page.get_by_role("tab").count()
        page.click("#pages .overflow-menu > button")
        button = page.locator("#pages .overflow-dropdown button").nth(TABS.index(tab) - shown)
    button.click()


def add_files(page: Page, *paths: Path) -> None:
    """Through the Documents page, until each file's line says how it ended."""
    go(page, "documents")
    page.set_input_files("#documents-bar input[type=file]", [str(path) for path in paths])
    lines = page.locator("#documents-progress li:not(.working)")
    expect(lines).to_have_count(len(paths), timeout=UPLOAD_MS)


def ask(page: Page, question: str) -> None:
    """Send a question in the chat; returns while the answer is being written."""
    go(page, "chat")
    page.fill("#question textarea", question)
    page.press("#question textarea", "Enter")


def wait_for_answers(page: Page, count: int) -> None:
    """Until that many are complete: for a moment a finished one stands in two places."""
    page.wait_for_function(
        "count => document.querySelectorAll('.turn [data-copy=answer]').length === count"
        " && document.querySelector('#send')",
        arg=count,
        timeout=ANSWER_MS,
    )


def lengths_while_writing(page: Page, selector: str, done: str) -> Sequence[int]:
    """How long the text of `selector` was, whenever it changed, until `done` is there."""
    return page.evaluate(
        """([selector, done, limit]) => new Promise((resolve) => {
            const seen = [];
            const started = Date.now();
            const timer = setInterval(() => {
                const length = document.querySelector(selector)?.innerText.length ?? 0;
                if (length !== (seen.at(-1) ?? 0)) seen.push(length);
                if (document.querySelector(done) || Date.now() - started > limit) {
                    clearInterval(timer);
                    resolve(seen);
                }
            }, 20);
        })""",
        [selector, done, ANSWER_MS],
    )


def set_length(page: Page, tokens: int) -> None:
    """Limit answers in the chat, so that tests are short."""
    page.click("[data-panel=decoding]")
    field = page.locator("#panel-decoding").get_by_label("Max new tokens").first
    field.fill(str(tokens))
    field.press("Tab")
    page.keyboard.press("Escape")


def compare(page: Page, question: str, tokens: int = 24) -> None:
    """Start a comparison; returns while it runs."""
    go(page, "compare")
    page.locator("#compare-controls input[type=number]").nth(1).fill(str(tokens))
    page.fill("#compare-question textarea", question)
    page.press("#compare-question textarea", "Enter")


def wait_for_comparison(page: Page) -> None:
    page.wait_for_selector("#compare-columns [aria-busy=false]", timeout=ANSWER_MS)
