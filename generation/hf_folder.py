"""A folder in the Hugging Face layout to a model and its tokenizer, without running its code.

Only safetensors are read. A folder that carries code, asks for code (`auto_map`) or has nothing but
pickled weights is refused before anything in it is opened by a library.
"""

import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from generation.errors import ModelError

CODE_SUFFIXES = (".py", ".pyc", ".pyd", ".so", ".dll", ".dylib")


def check_folder(folder: Path) -> None:
    """Raise ModelError unless the folder holds data only (threat T7)."""
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} has no config.json: it is not a model folder.")
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in CODE_SUFFIXES:
            raise ModelError(
                f"{folder} contains code ({path.name}), which is never run: use a model made of "
                "safetensors and JSON files only."
            )
        if path.suffix == ".json" and _asks_for_code(path):
            raise ModelError(
                f"{path} asks for custom code (auto_map), which is never run: use a model whose "
                "architecture transformers knows."
            )
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{folder} has no .safetensors file; pickled weights (.bin, .pt) can run code and are "
            "not read: convert them to safetensors first."
        )


def load_folder(folder: Path, dtype: torch.dtype, device: torch.device):
    """The transformers module, in eval mode and without gradients, and the tokenizer."""
    check_folder(folder)
    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation="sdpa",
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    return model.to(device).eval().requires_grad_(False), tokenizer


class quiet_transformers:
    """Without transformers' own progress bars: ours is the one that is shown."""

    def __enter__(self) -> None:
        self._shown = transformers_logging.is_progress_bar_enabled()
        transformers_logging.disable_progress_bar()

    def __exit__(self, *_) -> None:
        if self._shown:
            transformers_logging.enable_progress_bar()


def _asks_for_code(path: Path) -> bool:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "auto_map" in content
