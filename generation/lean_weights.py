"""All weights of a Llama or Qwen2 model, packed: from the .gguf file, or from its module.

Knows where the two formats keep what; does not know how the weights are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from generation.gguf_header import GgufHeader, TensorInfo, read_header
from generation.packed import PackedMatrix, aligned, pack_floats, pack_int8
from generation.progress import Progress, silent
from generation.quantized import UnsupportedBlocks, pack_tensor

# The names of one layer's matrices in the module and in a .gguf file.
NAMES = {
    "query": ("self_attn.q_proj", "attn_q"),
    "key": ("self_attn.k_proj", "attn_k"),
    "value": ("self_attn.v_proj", "attn_v"),
    "output": ("self_attn.o_proj", "attn_output"),
    "gate": ("mlp.gate_proj", "ffn_gate"),
    "up": ("mlp.up_proj", "ffn_up"),
    "down": ("mlp.down_proj", "ffn_down"),
}


@dataclass(frozen=True)
class LayerWeights:
    """One layer: seven matrices `(outputs, inputs)` with their biases, two norms `(D)`."""

    attention_norm: NDArray[np.float32]
    mlp_norm: NDArray[np.float32]
    query: PackedMatrix
    key: PackedMatrix
    value: PackedMatrix
    output: PackedMatrix
    gate: PackedMatrix
    up: PackedMatrix
    down: PackedMatrix

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, field.name).nbytes for field in fields(self))


@dataclass(frozen=True)
class LeanWeights:
    """A whole model; `head` is `embedding` itself where the model ties them."""

    embedding: PackedMatrix  # (V, D)
    head: PackedMatrix  # (V, D)
    final_norm: NDArray[np.float32]  # (D)
    layers: tuple[LayerWeights, ...]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        tied = 0 if self.embedding is self.head else self.embedding.nbytes
        return tied + self.step_nbytes

    @property
    def step_nbytes(self) -> int:
        """Bytes read for one step of decoding, without the cache."""
        layers = sum(layer.nbytes for layer in self.layers)
        return layers + self.head.nbytes + self.final_norm.nbytes


def pack_module(
    hf_model: Any, pack: Callable[[Tensor], PackedMatrix] = pack_floats, progress: Progress = silent
) -> LeanWeights:
    """The module's own weights, each matrix through `pack`; norms and biases as they are."""
    return _gather(hf_model, lambda module, _file: pack(module.weight), progress)


def pack_module_int8(hf_model: Any, progress: Progress = silent) -> LeanWeights:
    """The module's weights rounded to 8 bits in groups of 32."""
    return pack_module(hf_model, pack_int8, progress)


def pack_gguf(path: Path, hf_model: Any, progress: Progress = silent) -> LeanWeights:
    """The blocks of a .gguf file, for the module that was converted from it.

    A tensor whose type has no packed form is taken from the module. Norms and biases are read from
    the file, where they are float32.
    """
    header = read_header(path)
    file = _GgufTensors(header, np.memmap(path, dtype=np.uint8, mode="r"))
    orders = {
        "attn_q": _rotary_order(header, hf_model.config.num_attention_heads),
        "attn_k": _rotary_order(header, hf_model.config.num_key_value_heads),
    }

    def matrix(module: Any, name: str) -> PackedMatrix:
        try:
            order = orders.get(name.rpartition(".")[2])
            if order is None:
                return file.matrix(f"{name}.weight")
            rows = file.infos[f"{name}.weight"].shape[1]
            return file.matrix(f"{name}.weight", order(rows))
        except (UnsupportedBlocks, KeyError):
            return pack_floats(module.weight)

    return _gather(hf_model, matrix, progress)


def _gather(
    hf_model: Any, matrix: Callable[[Any, str], PackedMatrix], progress: Progress
) -> LeanWeights:
    """`matrix(module, name in a .gguf file)` for every linear module of the model."""
    body = hf_model.model
    layers = []
    for index, layer in enumerate(body.layers):
        progress("Packing the weights", index, len(body.layers))
        matrices = {}
        for field, (module_name, file_name) in NAMES.items():
            module = layer.get_submodule(module_name)
            packed = matrix(module, f"blk.{index}.{file_name}")
            matrices[field] = packed.with_bias(module.bias)
        norms = (_vector(layer.input_layernorm), _vector(layer.post_attention_layernorm))
        layers.append(LayerWeights(*norms, **matrices))
    embedding = matrix(body.embed_tokens, "token_embd")
    tied = hf_model.lm_head.weight is body.embed_tokens.weight
    head = embedding if tied else matrix(hf_model.lm_head, "output")
    progress("Packing the weights", len(layers), len(layers))
    return LeanWeights(embedding, head, _vector(body.norm), tuple(layers))


def _vector(norm: Any) -> NDArray[np.float32]:
    return aligned(norm.weight.detach().to(torch.float32).cpu().numpy())


def _rotary_order(
    header: GgufHeader, heads: int
) -> Callable[[int], NDArray[np.int64]] | None:
    """Where the rows of a query or key matrix are in the file.

    llama.cpp's converter puts the two halves of each head of a Llama alternately, for the rotary
    form that pairs neighbours; transformers pairs element i with i + half.
    """
    if header.architecture != "llama":
        return None

    def order(rows: int) -> NDArray[np.int64]:
        return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(-1)

    return order


@dataclass(frozen=True)
class _GgufTensors:
    header: GgufHeader
    data: NDArray[np.uint8]

    @property
    def infos(self) -> dict[str, TensorInfo]:
        return {info.name: info for info in self.header.tensors}

    def matrix(self, name: str, order: NDArray[np.int64] | None = None) -> PackedMatrix:
        info = self.infos[name]
        return pack_tensor(info, self.data[info.start : info.start + info.size], order)
