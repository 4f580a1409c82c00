"""Fixtures that need real weights; they are fetched once into the cache and loaded once a run."""

from pathlib import Path

import pytest
import torch

from generation.model import LanguageModel, load_model
from generation.weights import cache_dir, ensure
from rag.embedding import Embedder


def pytest_configure() -> None:
    # With several threads every operation waits for the slowest core: on a machine that does
    # something else as well, tests of tiny models would take many times as long.
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The browser's driver keeps an event loop running and its server is a child process until the
    # end; other tests start loops of their own and count their children.
    items.sort(key=lambda item: "browser" in item.path.parts)


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
