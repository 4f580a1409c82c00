"""Fixtures that need real weights; they are fetched once into the cache and loaded once a run."""

import pytest

from generation.model import LanguageModel, load_model


@pytest.fixture(scope="session")
def smollm2() -> LanguageModel:
    return load_model("smollm2", device="cpu", precision="fp32")


@pytest.fixture(scope="session")
def smollm2_bf16() -> LanguageModel:
    return load_model("smollm2", device="cpu", precision="bf16")
