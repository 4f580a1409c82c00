"""The blocks of a .gguf file to packed matrices, code by code: nothing is quantized again.

What each type of block becomes, and why the weights stay exactly those of the file:

    Q4_0, Q4_1, Q5_0, Q5_1, Q8_0   the same codes, float16 scales and minimums
    Q4_K                           the same 4-bit codes; scale and minimum of each 32 are products
                                   of a float16 and 6 bits, kept as the float32 they are
    Q6_K                           the same 6-bit codes, in 8 bits; float32 scales of each 16
    F32, F16, BF16                 floats

Other types raise UnsupportedBlocks: the caller packs what transformers dequantized instead. The
layouts of the blocks are those of ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from numpy.typing import NDArray

from generation.gguf_header import TensorInfo
from generation.packed import GROUP, Kind, PackedMatrix, pack_codes, pack_floats

Blocks = NDArray[np.uint8]  # (rows, blocks of a row, bytes of a block)


class UnsupportedBlocks(ValueError):
    """A type of block that has no packed form here."""


class Codes(NamedTuple):
    """Words `(rows, groups, n)`, scales and minimums `(rows, groups, 1 or 2)` of a tensor."""

    kind: Kind
    words: NDArray[np.uint32]
    scales: NDArray
    minimums: NDArray | None = None
    zero: float = 0.0


def pack_tensor(
    info: TensorInfo, data: NDArray[np.uint8], order: NDArray[np.int64] | None = None
) -> PackedMatrix:
    """The matrix in the bytes `data` of a tensor; with `order`, row i is the file's row order[i].

    Raises UnsupportedBlocks for a type without a packed form.
    """
    columns, rows = info.shape
    block, block_bytes = GGML_QUANT_SIZES[info.kind]
    values = data.reshape(rows, columns // block, block_bytes)
    if order is not None:
        values = values[order]
    if info.kind in FLOATS:
        flat = torch.from_numpy(np.require(values, requirements=["C", "W"]).reshape(rows, -1))
        return pack_floats(flat.view(FLOATS[info.kind]))
    if info.kind not in READERS:
        raise UnsupportedBlocks(f"{info.name} is {info.kind.name}, which has no packed form")
    return pack_codes_of(columns, READERS[info.kind](values))


def pack_codes_of(columns: int, codes: Codes) -> PackedMatrix:
    kind, words, scales, minimums, zero = codes
    return pack_codes(kind, columns, words, scales, minimums, zero)


def _halves(blocks: Blocks, at: int) -> NDArray[np.float16]:
    """The 16-bit float at byte `at` of every block: (rows, blocks, 1)."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16)


def _words(blocks: Blocks, at: int, count: int) -> NDArray[np.uint32]:
    """The `count` 32-bit words at byte `at` of every block: (rows, blocks, count)."""
    return np.ascontiguousarray(blocks[..., at : at + 4 * count]).view(np.uint32)


def _q4_0(blocks: Blocks) -> Codes:
    return Codes(Kind.INT4, _words(blocks, 2, 4), _halves(blocks, 0), zero=8.0)


def _q4_1(blocks: Blocks) -> Codes:
    return Codes(Kind.INT4, _words(blocks, 4, 4), _halves(blocks, 0), _halves(blocks, 2))


def _q5_0(blocks: Blocks) -> Codes:  # bit k of the first word is the fifth bit of weight k
    return Codes(Kind.INT5, _words(blocks, 2, 5), _halves(blocks, 0), zero=16.0)


def _q5_1(blocks: Blocks) -> Codes:
    return Codes(Kind.INT5, _words(blocks, 4, 5), _halves(blocks, 0), _halves(blocks, 2))


def _q8_0(blocks: Blocks) -> Codes:
    return Codes(Kind.INT8, _words(blocks, 2, 8), _halves(blocks, 0))


def _q4_k(blocks: Blocks) -> Codes:
    """256 weights: d, dmin, 12 bytes with a scale and a minimum of 6 bits for each 32, nibbles."""
    rows, count, _ = blocks.shape
    d, dmin = (_halves(blocks, at).astype(np.float32) for at in (0, 2))
    packed = blocks[..., 4:16].reshape(rows, count, 3, 4)
    first, second, third = packed[..., 0, :], packed[..., 1, :], packed[..., 2, :]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=-1)
    minimums = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=-1)
    # Each 32 bytes hold one 32 weights in their low nibbles and the next in their high ones.
    quads = blocks[..., 16:].reshape(rows, count, 4, 1, 32)
    nibbles = np.concatenate([quads & 15, quads >> 4], axis=3)  # (rows, count, 4, 2, 32)
    low, high = nibbles[..., :16], nibbles[..., 16:]  # of one group, as Q4_0 pairs them
    words = np.ascontiguousarray(low | high << 4).view(np.uint32).reshape(rows, -1, 4)
    return Codes(
        Kind.INT4,
        words,
        (d * scales).reshape(rows, -1, 1),
        (-dmin * minimums).reshape(rows, -1, 1),
    )


def _q6_k(blocks: Blocks) -> Codes:
    """256 weights: low nibbles (128 bytes), two high bits (64), 16 signed scales, d."""
    rows, count, _ = blocks.shape
    low = blocks[..., :128].reshape(rows, count, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=3).reshape(rows, count, 8, 32)
    high = blocks[..., 128:192].reshape(rows, count, 2, 1, 32)
    high = np.concatenate([high >> shift & 3 for shift in (0, 2, 4, 6)], axis=3)
    codes = (low | high.reshape(rows, count, 8, 32) << 4).view(np.int8) - np.int8(32)
    d = _halves(blocks, 208).astype(np.float32)
    scales = d * np.ascontiguousarray(blocks[..., 192:208]).view(np.int8)
    words = codes.view(np.uint32).reshape(rows, -1, GROUP // 4)
    return Codes(Kind.INT8_FINE, words, scales.reshape(rows, -1, 2))


READERS: dict[GGMLQuantizationType, Callable[[Blocks], Codes]] = {
    GGMLQuantizationType.Q4_0: _q4_0,
    GGMLQuantizationType.Q4_1: _q4_1,
    GGMLQuantizationType.Q5_0: _q5_0,
    GGMLQuantizationType.Q5_1: _q5_1,
    GGMLQuantizationType.Q8_0: _q8_0,
    GGMLQuantizationType.Q4_K: _q4_k,
    GGMLQuantizationType.Q6_K: _q6_k,
}
FLOATS = {
    GGMLQuantizationType.F32: torch.float32,
    GGMLQuantizationType.F16: torch.float16,
    GGMLQuantizationType.BF16: torch.bfloat16,
}
