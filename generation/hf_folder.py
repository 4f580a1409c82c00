"""A folder in the Hugging Face layout to a model and its tokenizer, without running its code.

Only safetensors are read. A folder that carries code, asks for code (`auto_map`) or has nothing but
pickled weights is refused before a library opens anything in it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from generation.errors import ModelError
from generation.memory import require_memory

CODE_SUFFIXES = frozenset({".py", ".pyc", ".pyd", ".so", ".dll", ".dylib"})
PICKLE_SUFFIXES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})
# Keys by which a configuration names code or kernels to fetch and run.
CODE_KEYS = frozenset({"auto_map", "custom_pipelines"})
# Large, and data only: no library takes instructions from them.
VOCABULARIES = frozenset({"tokenizer.json", "vocab.json", "added_tokens.json"})
SPARE_BYTES = 300 << 20  # for activations and the cache of a short conversation


def load_folder(
    folder: Path, dtype: torch.dtype, device: torch.device
) -> tuple[Any, PreTrainedTokenizerFast]:
    """The transformers module, in eval mode and without gradients, and the tokenizer.

    Raises ModelError, before any weight is read, when the folder is unsafe, damaged, not a causal
    language model or too large for the memory there is.
    """
    check_folder(folder)
    needed = count_parameters(folder) * dtype.itemsize + SPARE_BYTES
    require_memory(needed, device, f"Loading {folder.name}")
    try:
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=dtype,
                attn_implementation="sdpa",
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except Exception as error:  # of many libraries, about anything that can be wrong in a file
        raise ModelError(f"{folder} cannot be loaded: {first_line(error)}") from error
    model, report = loaded
    require_complete(report, folder)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(f"{folder} has no tokenizer.json, the only tokenizer format read here.")
    return model.to(device).eval().requires_grad_(False), tokenizer


def check_folder(folder: Path) -> None:
    """Raise ModelError unless the folder is a model in data alone (threat T7)."""
    if not any(folder.glob("*.safetensors")):
        raise ModelError(f"{folder} has no .safetensors file{_instead_of(folder)}.")
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} has no config.json: it is not a model folder.")
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in CODE_SUFFIXES:
            raise ModelError(
                f"{folder} contains code ({path.name}), which is never run: use a model made of "
                "safetensors and JSON files only."
            )
    check_configurations(folder)


def check_configurations(folder: Path) -> None:
    """Raise ModelError when a JSON file below `folder` asks for code, or is damaged."""
    for path in sorted(folder.rglob("*.json")):
        if path.name not in VOCABULARIES:
            _check_configuration(path)


def count_parameters(folder: Path) -> int:
    """The number of weights in the folder's safetensors, read from their headers."""
    total = 0
    for path in folder.glob("*.safetensors"):
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 (not a mapping)
                    total += _product(file.get_slice(name).get_shape())
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{path} is damaged ({first_line(error)}): fetch it again.") from error
    return total


def require_complete(report: dict, source: Path) -> None:
    """Raise ModelError when weights were missing, which transformers would fill with noise."""
    missing = sorted(report["missing_keys"]) + sorted(map(str, report.get("mismatched_keys", ())))
    if missing:
        raise ModelError(
            f"{source} lacks {len(missing)} of its model's weights, such as {missing[0]}."
        )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without transformers' own progress bars: ours is the one that is shown."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def first_line(error: Exception) -> str:
    """The first line of an error's text, for a sentence of ours."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _instead_of(folder: Path) -> str:
    suffixes = {path.suffix.lower() for path in folder.iterdir()}
    if ".gguf" in suffixes:
        return ": give the .gguf file itself"
    if suffixes & PICKLE_SUFFIXES:
        return "; its pickled weights can run code and are not read: convert them to safetensors"
    return ""


def _check_configuration(path: Path) -> None:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({first_line(error)}): fetch it again.") from error
    if _has_key(content, CODE_KEYS):
        raise ModelError(
            f"{path} asks for code of its own (auto_map), which is never run: use a model whose "
            "architecture transformers knows."
        )
    if path.name == "config.json" and _has_key(content, {"quantization_config"}):
        raise ModelError(
            f"{path.parent} is quantized in a format that is not read here: use a .gguf file or "
            "the original weights."
        )


def _has_key(content: Any, keys: frozenset[str] | set[str]) -> bool:
    if isinstance(content, dict):
        return bool(keys & content.keys()) or any(_has_key(v, keys) for v in content.values())
    return isinstance(content, list) and any(_has_key(item, keys) for item in content)


def _product(shape: list[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
