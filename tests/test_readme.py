"""What the documentation says of the code is drawn from the code."""

from __future__ import annotations

import re

import pytest

from tests.readme import BLOCKS, PACKAGES, ROOT, first_sentence, with_block


@pytest.mark.parametrize("name", BLOCKS)
def test_a_generated_block_is_up_to_date(name):
    file, draw = BLOCKS[name]
    text = (ROOT / file).read_text("utf-8")
    assert with_block(text, name, draw()) == text, "run: python -m tests.readme"


def test_every_module_says_what_it_does():
    for package in PACKAGES:
        for path in (ROOT / package).glob("*.py"):
            if path.name != "__init__.py":
                assert first_sentence(path), path


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_every_file_that_is_linked_or_named_exists(file):
    text = (ROOT / file).read_text("utf-8")
    links = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    named = re.findall(r"`((?:generation|rag|ui|tests|benchmarks)/[\w/]+\.\w+)`", text)
    missing = [path for path in links + named if not (ROOT / path).exists()]
    assert not missing
