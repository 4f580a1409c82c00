"""Memory is asked for before it is used."""

import psutil
import pytest
import torch

from generation import memory
from generation.errors import ModelError

CPU = torch.device("cpu")


def test_there_is_memory_and_it_can_be_too_little():
    available = memory.available_bytes(CPU)
    assert available > 0
    memory.require_memory(1, CPU, "One byte")
    with pytest.raises(ModelError, match=r"^Everything takes about .* choose a smaller model\.$"):
        memory.require_memory(available * 100, CPU, "Everything")


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 400\n")
    assert memory.available_bytes(CPU) == 500
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_bytes(CPU) > psutil.virtual_memory().total // 1000
