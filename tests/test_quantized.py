"""Blocks of .gguf files as packed matrices, against the reader of the gguf package."""

from __future__ import annotations

import ctypes

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGML_QUANT_SIZES
from gguf.constants import GGMLQuantizationType as Type

from generation.gguf_header import TensorInfo
from generation.kernel_library import NATIVE, Matrix, load_kernel
from generation.packed import PackedMatrix, aligned, pack_floats, pack_int8
from generation.quantized import FLOATS, READERS, UnsupportedBlocks, pack_tensor

ROWS, COLUMNS = 37, 512  # the last tile is not full


def random_blocks(kind: Type):
    """Every bit pattern of the codes is possible; scales and minimums are ordinary numbers."""
    rng = np.random.default_rng(3)
    block, size = GGML_QUANT_SIZES[kind]
    if kind in FLOATS:
        dtype = FLOATS[kind]
        weights = torch.from_numpy(rng.standard_normal((ROWS, COLUMNS))).to(dtype)
        return weights.view(torch.uint8).numpy()
    blocks = rng.integers(0, 256, (ROWS, COLUMNS // block, size), dtype=np.uint8)
    places = {Type.Q4_1: (0, 2), Type.Q5_1: (0, 2), Type.Q4_K: (0, 2), Type.Q6_K: (208,)}
    for at in places.get(kind, (0,)):
        scales = rng.normal(0, 0.01, blocks.shape[:2]).astype(np.float16)
        blocks[..., at : at + 2] = scales[..., None].view(np.uint8)
    return blocks.reshape(ROWS, -1)


def pack(kind: Type, order=None) -> PackedMatrix:
    data = random_blocks(kind)
    info = TensorInfo("blk.0.ffn_up.weight", (COLUMNS, ROWS), kind, 0, data.size)
    return pack_tensor(info, data.reshape(-1), order)


def dequantized(packed: PackedMatrix, natives=NATIVE):
    library, matrix = load_kernel(natives=natives), Matrix.of(packed)
    out = np.empty((packed.rows, packed.columns), np.float32)
    for row in range(packed.rows):
        library.lean_row(ctypes.byref(matrix), row, out[row].ctypes.data)
    return out


def product(packed: PackedMatrix, x, natives=NATIVE):
    library, matrix = load_kernel(natives=natives), Matrix.of(packed)
    out = np.empty((len(x), packed.rows), np.float32)
    x = aligned(np.pad(x, ((0, 0), (0, -x.shape[1] % 32))))
    library.lean_product(ctypes.byref(matrix), x.ctypes.data, len(x), out.ctypes.data)
    return out


@pytest.mark.parametrize("kind", [*READERS, *FLOATS], ids=lambda kind: kind.name)
def test_packed_weights_are_exactly_those_of_the_file(kind):
    expected = gguf.quants.dequantize(random_blocks(kind), kind)
    # A minimum is added in one rounding by the kernel and in two by the package.
    np.testing.assert_allclose(dequantized(pack(kind)), expected, rtol=0, atol=2e-7)


@pytest.mark.parametrize("rows", range(1, 9))
@pytest.mark.parametrize("kind", [*READERS, Type.F32, Type.BF16], ids=lambda kind: kind.name)
def test_a_product_is_that_with_the_dequantized_weights(kind, rows):
    x = np.random.default_rng(rows).standard_normal((rows, COLUMNS), dtype=np.float32)
    expected = x.astype(np.float64) @ dequantized(pack(kind)).astype(np.float64).T
    scale = np.abs(expected).max()
    np.testing.assert_allclose(product(pack(kind), x), expected, rtol=0, atol=2e-6 * scale)


@pytest.mark.parametrize("kind", [*READERS, *FLOATS], ids=lambda kind: kind.name)
def test_code_for_any_processor_computes_the_same(kind):
    x = np.random.default_rng(0).standard_normal((3, COLUMNS), dtype=np.float32)
    packed = pack(kind)
    expected = product(packed, x)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(dequantized(packed, ((),)), dequantized(packed), rtol=0, atol=2e-7)
    np.testing.assert_allclose(product(packed, x, ((),)), expected, rtol=0, atol=2e-6 * scale)


def test_rows_can_be_taken_in_another_order():
    order = np.random.default_rng(0).permutation(ROWS)
    np.testing.assert_array_equal(
        dequantized(pack(Type.Q5_0, order)), dequantized(pack(Type.Q5_0))[order]
    )


def test_other_blocks_are_refused_by_name():
    info = TensorInfo("output.weight", (256, 1), Type.Q2_K, 0, 84)
    with pytest.raises(UnsupportedBlocks, match=r"output\.weight is Q2_K"):
        pack_tensor(info, np.zeros(84, np.uint8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [1, 31, 33, 64])
def test_floats_are_kept_as_they_are_whatever_their_number(dtype, columns):
    weight = torch.randn(5, columns).to(dtype)
    np.testing.assert_array_equal(dequantized(pack_floats(weight)), weight.float().numpy())


def test_eight_bits_err_by_half_a_step_at_most():
    weight = torch.randn(19, 70)
    weight[3] = 0
    error = (torch.from_numpy(dequantized(pack_int8(weight))) - weight).abs()
    groups = torch.nn.functional.pad(weight, (0, 26)).view(19, 3, 32).abs().amax(-1)
    steps = groups.repeat_interleave(32, 1)[:, :70] / 127
    assert (error <= 0.5 * steps + 2**-11 * weight.abs() + 1e-9).all()
