"""A .gguf file to weights, configuration and tokenizer in the Hugging Face layout, kept by hash.

The file is converted once for each precision and the result kept as safetensors, which load
memory-mapped. transformers reads the architectures; what its reading loses is put back here: the
pre-tokenizer of some vocabularies, and the ids that end an answer.

What the kept copy is: every block of the file is dequantized in float32, exactly as the format
defines it (llama.cpp's arithmetic). For "fp32" that is what is stored. For "bf16" each weight is
then rounded once, to the nearest bfloat16 (8 significant bits, a relative error of at most 2^-9).
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoModelForCausalLM, GgufConfig, PreTrainedTokenizerFast

from generation.errors import ModelError
from generation.gguf_header import GgufHeader, read_header, write_without_vocabulary
from generation.hf_folder import first_line, quiet_transformers, require_complete
from generation.memory import require_memory
from generation.progress import Progress, silent
from generation.storage import cache_dir, file_sha256, locked, publish_folder, sha256_of

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
# Raised whenever a change here changes what is kept, so that old copies are left alone.
LAYOUT = 1
MANIFEST = "manifest.json"
FILE = "model.gguf"

# `tokenizer.ggml.pre` of the vocabularies that were trained with every digit on its own, before
# GPT-2's pattern (llama.cpp, llama-vocab.cpp). A digit is any character of category N.
DIGITS_FIRST = frozenset(
    {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}
)
# Architectures that transformers reads in a newer way: fast, but dequantizing in the type that is
# asked for. The others are dequantized in float32 and rounded then.
NEWER_READER = frozenset({"lfm2", "qwen35", "qwen35moe"})
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
# Rotary frequencies that were scaled for long contexts; transformers does not read them from here.
SCALED_ROTARY = frozenset(
    {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}
)


def convert_gguf(path: Path, precision: str, progress: Progress = silent) -> Path:
    """The folder that holds `path` in `precision` ("fp32" or "bf16"); made on first use.

    Raises ModelError for a file that is damaged, of an unknown architecture, or too large.
    """
    try:
        sha256 = file_sha256(path, progress)
        place = cache_dir() / "converted" / f"{sha256}-{precision}-{LAYOUT}"
        if not is_whole(place):
            name = f"convert-{place.name}"
            with locked(name, f"Waiting for another conversion of {path.name}", progress):
                if not is_whole(place):
                    shutil.rmtree(place, ignore_errors=True)
                    _convert(path, precision, place, progress)
    except OSError as error:
        raise ModelError(f"{path} could not be converted: {first_line(error)}") from error
    return place


def inspect_gguf(path: Path) -> GgufHeader:
    """Read the header; raise ModelError unless all of the file is there and can be read exactly."""
    try:
        header = read_header(path)
    except ValueError as error:
        raise ModelError(f"{path} is not a whole GGUF file ({error}): fetch it again.") from error
    if header.metadata.get("split.count", 0) not in (0, 1):
        raise ModelError(f"{path} is one part of a model: join the parts with llama-gguf-split.")
    scaling = header.metadata.get(f"{header.architecture}.rope.scaling.type", "none")
    if scaling != "none" or any(tensor.name in SCALED_ROTARY for tensor in header.tensors):
        raise ModelError(
            f"{path} scales its rotary positions, which cannot be read from GGUF exactly: use the "
            "model's safetensors."
        )
    return header


def end_ids(header: GgufHeader) -> list[int]:
    """Every id that the file itself calls an end."""
    keys = [f"tokenizer.ggml.{key}" for key in END_KEYS]
    return sorted({int(header.metadata[key]) for key in keys if key in header.metadata})


def restore_pre_tokenizer(backend: Tokenizer, pre_tokenizer: str) -> None:
    """Put back what transformers' rebuilding of a byte-level tokenizer from GGUF leaves out."""
    if pre_tokenizer in DIGITS_FIRST:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )


def is_whole(place: Path) -> bool:
    """Whether a kept folder has all its files, unchanged since they were written."""
    try:
        manifest = json.loads((place / MANIFEST).read_text("utf-8"))
        return all(file_sha256(place / name) == sha256 for name, sha256 in manifest.items())
    except (OSError, ValueError, AttributeError):
        return False


def _convert(path: Path, precision: str, place: Path, progress: Progress) -> None:
    header = inspect_gguf(path)
    counts = [tensor.count for tensor in header.tensors]
    stored = sum(counts) * DTYPES[precision].itemsize
    read = sum(counts) * _read_type(header, DTYPES[precision]).itemsize
    # Measured: the weights, a part of them again while they are written, one tensor's work space.
    working = int(1.4 * read) + 2 * max(counts, default=0) * torch.float32.itemsize
    require_memory(working, torch.device("cpu"), f"Converting {path.name} to {precision}")
    place.parent.mkdir(parents=True, exist_ok=True)
    _require_space(stored + path.stat().st_size, place.parent)
    label = f"Converting {path.name} to {precision} (once; {stored / 1e6:.0f} MB in {place})"
    for left in place.parent.glob(f".partial-{place.name}-*"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".partial-{place.name}-") as scratch:
        folder = Path(scratch) / "folder"
        folder.mkdir()
        progress(label, 0, 4)
        try:
            _write_tokenizer(header, Path(scratch), folder)
            progress(label, 1, 4)
            _write_model(header, Path(scratch), folder, DTYPES[precision])
        except ModelError:
            raise
        except Exception as error:  # of several libraries, about anything wrong in the file
            raise ModelError(f"{path} cannot be converted: {first_line(error)}") from error
        progress(label, 2, 4)
        manifest = {file.name: sha256_of(file) for file in sorted(folder.iterdir())}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")
        progress(label, 3, 4)
        publish_folder(folder, place)
    progress(label, 4, 4)


def _write_tokenizer(header: GgufHeader, scratch: Path, folder: Path) -> None:
    # Alone in a folder: nothing that lies beside the file is read along with it.
    source = scratch / "whole"
    source.mkdir()
    _link(header.path.resolve(), source / FILE)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(
        source, gguf_file=FILE, local_files_only=True
    )
    pre_tokenizer = str(header.metadata.get("tokenizer.ggml.pre", ""))
    restore_pre_tokenizer(tokenizer.backend_tokenizer, pre_tokenizer)
    tokenizer.save_pretrained(folder)


def _write_model(header: GgufHeader, scratch: Path, folder: Path, dtype: torch.dtype) -> None:
    source = scratch / "weights"
    source.mkdir()
    if header.architecture in NEWER_READER:
        _link(header.path.resolve(), source / FILE)
    else:  # its reader parses the whole vocabulary twice, for nothing
        write_without_vocabulary(header, source / FILE)
    with quiet_transformers():
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source,
            gguf_file=FILE,
            dtype=_read_type(header, dtype),
            quantization_config=GgufConfig(dequantize=True),
            local_files_only=True,
            output_loading_info=True,
        )
    model, report = loaded
    require_complete(report, header.path)
    if ends := end_ids(header):
        model.generation_config.eos_token_id = ends
    with quiet_transformers():
        model.to(dtype).save_pretrained(folder)


def _read_type(header: GgufHeader, dtype: torch.dtype) -> torch.dtype:
    """The type to ask transformers for, so that each weight is rounded to `dtype` once."""
    return torch.float32 if header.architecture in NEWER_READER else dtype


def _link(target: Path, link: Path) -> None:
    try:
        os.symlink(target, link)
    except OSError:  # where links need rights
        shutil.copyfile(target, link)


def _require_space(needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(
            f"The converted copy needs {needed / 1e6:.0f} MB of disk and {folder} has "
            f"{free / 1e6:.0f} MB: free some, or set GLASSBOX_HOME to a folder on another disk."
        )
