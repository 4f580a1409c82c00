"""Weight matrices as the decoding kernel reads them: sixteen output rows side by side.

Knows arrays and the layout that `kernel/matrix.h` documents: 32 weights of a row are a group, a
group is a few 32-bit words of codes with a scale, and the words of sixteen rows lie next to each
other. Knows no file format and no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TILE = 16  # output rows side by side
GROUP = 32  # weights of a row that are stored together
ALIGNMENT = 64  # bytes: a cache line, so that no vector is loaded from two


class Kind(IntEnum):
    """What the words of a group hold; the numbers are those of `kernel/matrix.h`."""

    FP32 = 0
    BF16 = 1
    INT8 = 2  # signed
    INT8_FINE = 3  # signed, a scale for each half of the group
    INT5 = 4  # one word of high bits, then as INT4
    INT4 = 5  # four words of nibbles, in the order of ggml's blocks


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix `(rows, columns)` of weights `scale * (code - zero)` or `scale * code + minimum`."""

    kind: Kind
    rows: int
    columns: int
    words: NDArray[np.uint32]  # (tiles, groups, words of a group, TILE)
    scales: NDArray | None = None  # (tiles, groups, 1 or 2, TILE), float16 or float32
    minimums: NDArray | None = None  # the same shape and type, or None for none
    zero: float = 0.0
    bias: NDArray[np.float32] | None = None  # (rows)

    @property
    def nbytes(self) -> int:
        """Bytes read for one product."""
        arrays = (self.words, self.scales, self.minimums, self.bias)
        return sum(array.nbytes for array in arrays if array is not None)


def pack_codes(
    kind: Kind,
    columns: int,
    words: NDArray[np.uint32],
    scales: NDArray,
    minimums: NDArray | None = None,
    zero: float = 0.0,
) -> PackedMatrix:
    """One matrix of words `(rows, groups, words of a group)`, scales `(rows, groups, 1 or 2)`."""
    return PackedMatrix(
        kind,
        len(words),
        columns,
        interleave(words),
        interleave(scales),
        None if minimums is None else interleave(minimums),
        zero,
    )


def pack_floats(weight: Tensor) -> PackedMatrix:
    """A float32 or bfloat16 matrix `(rows, columns)` as it is; any other type as float32."""
    weight = weight.detach().cpu()
    kind = Kind.BF16 if weight.dtype == torch.bfloat16 else Kind.FP32
    weight = weight if kind is Kind.BF16 else weight.float()
    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight, (0, -columns % GROUP)).contiguous()
    words = padded.view(torch.int32).numpy().view(np.uint32).reshape(rows, -(-columns // GROUP), -1)
    return PackedMatrix(kind, rows, columns, interleave(words))


def pack_int8(weight: Tensor) -> PackedMatrix:
    """A float matrix `(rows, columns)` rounded to 8-bit codes, a scale for each 32 of a row.

    The scale makes the largest magnitude 127, as ggml's Q8_0 does: the error of a weight is at most
    1/254 of that magnitude, and what rounding the scale to float16 adds (2^-11 of the weight).
    """
    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight.detach().float().cpu(), (0, -columns % GROUP))
    groups = padded.view(rows, -1, GROUP)
    scales = groups.abs().amax(dim=-1, keepdim=True) / 127  # (rows, groups, 1)
    codes = torch.round(groups / scales.clamp_min(torch.finfo(torch.float32).tiny))
    words = codes.to(torch.int8).numpy().view(np.uint32)
    return pack_codes(Kind.INT8, columns, words, scales.half().numpy())


def interleave(values: NDArray) -> NDArray:
    """`(rows, groups, n)` to `(tiles, groups, n, TILE)`, with zeros for rows that are not there."""
    rows, groups, n = values.shape
    tiles = -(-rows // TILE)
    result = _aligned_empty((tiles, groups, n, TILE), values.dtype)
    whole = rows // TILE
    result[:whole] = values[: whole * TILE].reshape(whole, TILE, groups, n).transpose(0, 2, 3, 1)
    if whole < tiles:
        rest = values[whole * TILE :]
        result[whole] = 0
        result[whole, ..., : len(rest)] = rest.transpose(1, 2, 0)
    return result


def aligned(values: NDArray) -> NDArray:
    """A copy that begins at a cache line."""
    result = _aligned_empty(values.shape, values.dtype)
    result[...] = values
    return result


def _aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
