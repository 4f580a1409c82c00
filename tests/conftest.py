"""Fixtures that need real weights; they are fetched once into the cache and loaded once a run."""

from pathlib import Path

import pytest

from generation.model import LanguageModel, load_model
from generation.weights import cache_dir, ensure
from rag.embedding import Embedder


@pytest.fixture(scope="session")
def smollm2() -> LanguageModel:
    return load_model("smollm2", device="cpu", precision="fp32")


@pytest.fixture(scope="session")
def smollm2_bf16() -> LanguageModel:
    return load_model("smollm2", device="cpu", precision="bf16")


@pytest.fixture(scope="session")
def e5_file() -> Path:
    return ensure("e5-small")


@pytest.fixture(scope="session")
def embedder(e5_file: Path) -> Embedder:
    converted = cache_dir() / "converted"  # where the app keeps it, too
    return Embedder(e5_file, cache_dir=converted, device="cpu", precision="fp32")
