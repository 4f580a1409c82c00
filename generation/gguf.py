"""A .gguf file to weights, configuration and tokenizer in the Hugging Face layout, kept by hash.

Thin first version.
"""

import os
import tempfile
from pathlib import Path

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from generation.hf_folder import quiet_transformers
from generation.progress import Progress, silent
from generation.storage import cache_dir, file_sha256, locked, publish_folder

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def convert_gguf(path: Path, precision: str, progress: Progress = silent) -> Path:
    """The folder that holds `path` converted to `precision`; made on first use."""
    sha256 = file_sha256(path, progress)
    place = cache_dir() / "converted" / f"{sha256}-{precision}"
    if not place.exists():
        with locked(f"convert-{sha256}-{precision}", f"Waiting for {path.name}", progress):
            if not place.exists():
                _convert(path, precision, place, progress)
    return place


def _convert(path: Path, precision: str, place: Path, progress: Progress) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    label = f"Converting {path.name} to {precision}, kept in {place}"
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".partial-") as scratch:
        source, folder = Path(scratch) / "source", Path(scratch) / "folder"
        source.mkdir()
        os.symlink(path.resolve(), source / "model.gguf")
        progress(label, 0, 3)
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(source, gguf_file="model.gguf")
            progress(label, 1, 3)
            model = AutoModelForCausalLM.from_pretrained(
                source,
                gguf_file="model.gguf",
                dtype=DTYPES[precision],
                quantization_config=GgufConfig(dequantize=True),
            )
            progress(label, 2, 3)
            tokenizer.backend_tokenizer.pre_tokenizer = (
                pre_tokenizers.Sequence(
                    [
                        pre_tokenizers.Digits(individual_digits=True),
                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
                    ]
                )
                if b"smollm" in path.read_bytes()[:4096]
                else tokenizer.backend_tokenizer.pre_tokenizer
            )
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        publish_folder(folder, place)
    progress(label, 3, 3)
