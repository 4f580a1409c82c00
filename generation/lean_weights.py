"""All weights of a Llama or Qwen2 model, packed: from the .gguf file, or from its module.

Knows where the two formats keep what; does not know how the weights are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGMLQuantizationType
from numpy.typing import NDArray
from torch import Tensor

from generation.errors import ModelError
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

    def matrix(module: Any, _name: str) -> PackedMatrix:
        bias = getattr(module, "bias", None)
        return replace(pack(module.weight), bias=None if bias is None else _floats(bias))

    return _gather(hf_model, matrix, lambda norm, _name: _floats(norm.weight), progress)


def pack_module_int8(hf_model: Any, progress: Progress = silent) -> LeanWeights:
    """The module's weights rounded to 8 bits in groups of 32."""
    return pack_module(hf_model, pack_int8, progress)


def pack_gguf(path: Path, hf_model: Any, progress: Progress = silent) -> LeanWeights:
    """The blocks of a .gguf file, for the module that was converted from it.

    A tensor whose type has no packed form is taken from the module. Norms and biases are those of
    the file too, which keeps them in float32.
    """
    header = read_header(path)
    file = _GgufTensors(header, np.memmap(path, dtype=np.uint8, mode="r"))
    orders = {
        "attn_q": _rotary_order(header, hf_model.config.num_attention_heads),
        "attn_k": _rotary_order(header, hf_model.config.num_key_value_heads),
    }

    def matrix(module: Any, name: str) -> PackedMatrix:
        order = orders.get(name.rpartition(".")[2])
        try:
            packed = file.matrix(f"{name}.weight", order and order(len(module.weight)))
        except UnsupportedBlocks:
            packed = pack_floats(module.weight)
        if getattr(module, "bias", None) is None:
            return packed
        bias = file.vector(f"{name}.bias")
        return replace(packed, bias=bias[order(len(bias))] if order else bias)

    return _gather(hf_model, matrix, lambda _module, name: file.vector(f"{name}.weight"), progress)


def _gather(
    hf_model: Any,
    matrix: Callable[[Any, str], PackedMatrix],
    norm: Callable[[Any, str], NDArray[np.float32]],
    progress: Progress,
) -> LeanWeights:
    """`matrix` and `norm` of (module, name in a .gguf file) for every module of the model."""
    body = hf_model.model
    layers = []
    for index, layer in enumerate(body.layers):
        progress("Packing the weights", index, len(body.layers))
        matrices = {}
        for field, (module_name, file_name) in NAMES.items():
            module = layer.get_submodule(module_name)
            matrices[field] = matrix(module, f"blk.{index}.{file_name}")
        attention_norm = norm(layer.input_layernorm, f"blk.{index}.attn_norm")
        mlp_norm = norm(layer.post_attention_layernorm, f"blk.{index}.ffn_norm")
        layers.append(LayerWeights(attention_norm, mlp_norm, **matrices))
    embedding = matrix(body.embed_tokens, "token_embd")
    tied = hf_model.lm_head.weight is body.embed_tokens.weight
    head = embedding if tied else matrix(hf_model.lm_head, "output")
    progress("Packing the weights", len(layers), len(layers))
    return LeanWeights(embedding, head, norm(body.norm, "output_norm"), tuple(layers))


def _floats(parameter: Tensor) -> NDArray[np.float32]:
    return aligned(parameter.detach().float().cpu().numpy())


def _rotary_order(header: GgufHeader, heads: int) -> Callable[[int], NDArray[np.int64]] | None:
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

    @cached_property
    def infos(self) -> dict[str, TensorInfo]:
        return {info.name: info for info in self.header.tensors}

    def matrix(self, name: str, order: NDArray[np.int64] | None = None) -> PackedMatrix:
        return pack_tensor(self.infos[name], self._bytes(name), order)

    def vector(self, name: str) -> NDArray[np.float32]:
        """A norm or a bias, which every converter leaves in float32."""
        if self.infos[name].kind is not GGMLQuantizationType.F32:
            raise ModelError(f"{self.header.path}: {name} is not float32.")
        return aligned(self._bytes(name).view(np.float32))

    def _bytes(self, name: str) -> NDArray[np.uint8]:
        info = self.infos[name]
        return self.data[info.start : info.start + info.size]
