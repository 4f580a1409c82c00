"""The shipped multilingual-e5-small weights as an ordinary SentenceTransformer.

Converts an `E5S1` file once into a folder of safetensors, tokenizer and settings below a cache
directory, and opens that folder from then on. It does not know where the file came from, where the
cache lies, or what is embedded.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from rag.e5_format import E5Error, E5File, read_e5
from rag.e5_tokenizer import build_tokenizer
from rag.model_folder import ModelFolderError, fingerprint, open_folder

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

__all__ = ["PROMPTS", "E5Error", "convert", "load_e5"]

# "document" is what SentenceTransformer.encode_document looks for first; it means the same.
PROMPTS = {"query": "query: ", "passage": "passage: ", "document": "passage: "}
RECIPE = 1  # part of the folder's name: raise it when the conversion below changes
STALE_SECONDS = 3600
SPARE_BYTES = 64 << 20  # for the tokenizer, and so as not to fill the disk to the brim


def load_e5(
    path: Path, cache_dir: Path, *, device: str = "cpu", dtype: "torch.dtype | None" = None
) -> "SentenceTransformer":
    """The weights in `path` as a SentenceTransformer (float32 unless said). Raises E5Error."""
    import torch

    dtype = dtype or torch.float32
    folder = convert(path, cache_dir)
    try:
        return open_folder(folder, device, dtype)
    except ModelFolderError:  # it was whole when it got its name, so the disk or someone broke it
        shutil.rmtree(folder, ignore_errors=True)
    try:
        return open_folder(convert(path, cache_dir), device, dtype)
    except ModelFolderError as error:
        raise E5Error(f"{path.name} was unpacked, but {error}") from error


def convert(path: Path, cache_dir: Path) -> Path:
    """The folder for the weights in `path`, made on first use; named by the file's SHA-256.

    A folder with that name is always complete: it is written beside and renamed. Two processes may
    do this at once; the second finds the name taken and throws its own copy away.
    """
    try:
        folder = cache_dir / f"e5-{fingerprint(path)}-{RECIPE}"
        if not folder.is_dir():
            _publish(read_e5(path), folder)
    except (OSError, SafetensorError) as error:
        raise E5Error(f"{path.name} cannot be unpacked into {cache_dir}: {error}.") from error
    return folder


def _publish(weights: E5File, folder: Path) -> None:
    cache_dir = folder.parent
    cache_dir.mkdir(parents=True, exist_ok=True)
    _remove_stale(cache_dir)
    _require_space(cache_dir, sum(4 * tensor.elements for tensor in weights.directory.values()))
    unfinished = Path(tempfile.mkdtemp(prefix=".e5-", dir=cache_dir))
    try:
        _write_folder(weights, unfinished)
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was quicker, and its copy is as good
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_folder(weights: E5File, folder: Path) -> None:
    from safetensors.numpy import save_file
    from transformers import PreTrainedTokenizerFast

    tensors = {
        name: weights.tensor(source, shape) for name, source, shape in _tensor_names(weights)
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    names = [piece for piece, _ in weights.pieces]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=build_tokenizer(weights),
        bos_token=names[weights.bos_id],
        eos_token=names[weights.eos_id],
        cls_token=names[weights.bos_id],
        sep_token=names[weights.eos_id],
        pad_token=names[weights.pad_id],
        unk_token=names[weights.unk_id],
        model_max_length=weights.positions,
    )
    tokenizer.save_pretrained(folder)
    # Again, without the line breaks: half the size, and it is parsed at every start.
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    for name, content in _settings(weights).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    for file in folder.rglob("*"):
        if file.is_file():
            _flush_to_disk(file)


def _tensor_names(weights: E5File) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """(name in transformers' BertModel, name in the file, shape) of every tensor."""
    hidden, wide = weights.hidden, weights.intermediate
    yield "embeddings.word_embeddings.weight", "emb.word", (weights.vocabulary, hidden)
    yield "embeddings.position_embeddings.weight", "emb.pos", (weights.positions, hidden)
    yield "embeddings.token_type_embeddings.weight", "emb.type", (weights.token_types, hidden)
    yield "embeddings.LayerNorm.weight", "emb.ln.w", (hidden,)
    yield "embeddings.LayerNorm.bias", "emb.ln.b", (hidden,)
    parts: list[tuple[str, str, tuple[int, ...]]] = [
        ("attention.self.query", "q", (hidden, hidden)),
        ("attention.self.key", "k", (hidden, hidden)),
        ("attention.self.value", "v", (hidden, hidden)),
        ("attention.output.dense", "ao", (hidden, hidden)),
        ("attention.output.LayerNorm", "aln", (hidden,)),
        ("intermediate.dense", "fi", (wide, hidden)),
        ("output.dense", "fo", (hidden, wide)),
        ("output.LayerNorm", "oln", (hidden,)),
    ]
    for layer in range(weights.layers):
        for module, source, shape in parts:
            target = f"encoder.layer.{layer}.{module}"
            yield f"{target}.weight", f"l{layer}.{source}.w", shape
            yield f"{target}.bias", f"l{layer}.{source}.b", shape[:1]


def _settings(weights: E5File) -> dict[str, Any]:
    """The JSON files that make a folder a BertModel and a SentenceTransformer."""
    package = "sentence_transformers"
    modules = [
        ("", f"{package}.base.modules.transformer.Transformer"),
        ("1_Pooling", f"{package}.sentence_transformer.modules.pooling.Pooling"),
        ("2_Normalize", f"{package}.base.modules.normalize.Normalize"),
    ]
    return {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": weights.hidden,
            "num_hidden_layers": weights.layers,
            "num_attention_heads": weights.heads,
            "intermediate_size": weights.intermediate,
            "vocab_size": weights.vocabulary,
            "max_position_embeddings": weights.positions,
            "type_vocab_size": weights.token_types,
            "layer_norm_eps": weights.layer_norm_eps,
            "pad_token_id": weights.pad_id,
            "dtype": "float32",
        },
        "modules.json": [
            {"idx": index, "name": str(index), "path": path, "type": kind}
            for index, (path, kind) in enumerate(modules)
        ],
        "sentence_bert_config.json": {
            "max_seq_length": weights.positions,
            "model_kwargs": {"add_pooling_layer": False},  # the file has no weights for it
        },
        "1_Pooling/config.json": {"embedding_dimension": weights.hidden, "pooling_mode": "mean"},
        "2_Normalize/config.json": {},
        "config_sentence_transformers.json": {
            "model_type": "SentenceTransformer",
            "prompts": PROMPTS,
            "similarity_fn_name": "cosine",
        },
    }


def _flush_to_disk(file: Path) -> None:
    """So that a power cut after the rename cannot leave a complete name over incomplete data."""
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())


def _require_space(cache_dir: Path, needed: int) -> None:
    needed += SPARE_BYTES
    if shutil.disk_usage(cache_dir).free < needed:
        raise E5Error(f"Unpacking the embedder needs {needed / 1e9:.1f} GB free in {cache_dir}.")


def _remove_stale(cache_dir: Path) -> None:
    """Throw away what a killed conversion left: half a gigabyte each."""
    for unfinished in cache_dir.glob(".e5-*"):
        if time.time() - unfinished.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(unfinished, ignore_errors=True)
