"""Reads an `E5S1` file: multilingual-e5-small in 4-bit blocks, with its own vocabulary.

Knows bytes and arrays only. It does not know torch, transformers, or what the numbers are for.

Little-endian layout, packed without padding:

    "E5S1", version                                               4 bytes, u32
    hidden, layers, heads, intermediate, vocabulary, positions, token types    7 x i32
    layer-norm epsilon, block size (32)                           f32, i32
    pieces, then the ids of <s>, </s>, <pad>, <unk>               5 x i32
    length of the piece text                                      u64
    piece offsets, piece scores, piece text (UTF-8)               (pieces + 1) x u32, pieces x f32
    replacements, and their length in bytes                       i32, u32
        each: code point, count, that many code points            u32, u8, count x u32
    tensors                                                       i32
        each: name length, name, type, elements, offset, bytes    u16, ..., u8, u32, u64, u64

A tensor is plain f32 (type 0), or Q4_0 (type 1): blocks of 32 weights, each an f16 scale `d` and 16
bytes whose low nibbles are weights 0-15 and high nibbles weights 16-31, a weight being (q - 8) * d.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"E5S1"
VERSION = 1
BLOCK = 32
Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", (BLOCK // 2,))])
F32, Q4_0 = 0, 1


class E5Error(RuntimeError):
    """The weights file cannot be used. The message is one sentence, meant for the person."""


@dataclass(frozen=True)
class Tensor:
    """Where one tensor lies in the file."""

    kind: int
    elements: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class E5File:
    """One parsed file. Weights stay packed until `tensor` is called."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    token_types: int
    layer_norm_eps: float
    bos_id: int
    eos_id: int
    pad_id: int
    unk_id: int
    pieces: list[tuple[str, float]]
    replacements: Mapping[str, str]
    directory: Mapping[str, Tensor]
    data: bytes

    def tensor(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The named tensor as float32 of `shape`; E5Error unless the file holds just that."""
        entry = self.directory.get(name)
        if entry is None:
            raise E5Error(f"The weights file has no tensor {name!r}.")
        if entry.elements != math.prod(shape):
            raise E5Error(f"Tensor {name!r} has {entry.elements} elements, not {shape}.")
        raw = np.frombuffer(self.data, np.uint8, entry.nbytes, entry.offset)
        values = raw.view("<f4") if entry.kind == F32 else dequantize_q4_0(raw)
        if not np.isfinite(values).all():
            raise E5Error(f"Tensor {name!r} holds a value that is not a finite number.")
        return values.reshape(shape)


def dequantize_q4_0(raw: np.ndarray) -> np.ndarray:
    """Q4_0 bytes (18 n,) to float32 weights (32 n,), exactly: f16 times 4 bits fits f32."""
    blocks = raw.view(Q4_BLOCK)
    nibbles = blocks["nibbles"]  # (n, 16)
    codes = np.concatenate([nibbles & 0x0F, nibbles >> 4], axis=1).astype(np.int8) - 8  # (n, 32)
    return (codes * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)


def read_e5(path: Path) -> E5File:
    """Parse `path`. Every length is checked against the file before it is believed."""
    try:
        return _parse(_Reader(path.read_bytes()))
    except OSError as error:
        raise E5Error(f"The weights file {path.name} cannot be read: {error.strerror}.") from error
    except E5Error as error:
        raise E5Error(f"{path.name} is not a usable E5S1 file: {error}") from None


class _Reader:
    """A cursor over bytes that refuses to leave them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> int:
        """Step over `size` bytes and return where they start."""
        start = self.position
        if not 0 <= size <= len(self.data) - start:
            raise E5Error(f"it ends early (byte {start} asks for {size} more).")
        self.position = start + size
        return start

    def unpack(self, layout: str) -> tuple[Any, ...]:
        layout = "<" + layout
        return struct.unpack_from(layout, self.data, self.take(struct.calcsize(layout)))

    def array(self, dtype: str, count: int) -> np.ndarray:
        start = self.take(count * np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, dtype, count, start)

    def text(self, size: int) -> bytes:
        start = self.take(size)
        return self.data[start : start + size]


def _parse(reader: _Reader) -> E5File:
    magic, version = reader.unpack("4sI")
    if magic != MAGIC or version != VERSION:
        raise E5Error(f"it starts with {magic!r}, version {version}.")
    hidden, layers, heads, intermediate, vocabulary, positions, token_types, eps, block = (
        reader.unpack("7ifi")
    )
    sizes_fit = (
        min(hidden, layers, heads, intermediate, vocabulary, positions, token_types) > 0
        and block == BLOCK
        and hidden % heads == hidden % BLOCK == intermediate % BLOCK == 0
        and 0 < eps < 1
    )
    if not sizes_fit:
        raise E5Error("the sizes in its header contradict each other.")

    count, bos_id, eos_id, pad_id, unk_id = reader.unpack("5i")
    special = (bos_id, eos_id, pad_id, unk_id)
    if not all(0 <= i < count <= vocabulary for i in special) or len(set(special)) != 4:
        raise E5Error("its vocabulary does not fit its header.")
    return E5File(
        hidden=hidden,
        layers=layers,
        heads=heads,
        intermediate=intermediate,
        vocabulary=vocabulary,
        positions=positions,
        token_types=token_types,
        layer_norm_eps=eps,
        bos_id=bos_id,
        eos_id=eos_id,
        pad_id=pad_id,
        unk_id=unk_id,
        pieces=_pieces(reader, count),
        replacements=_replacements(reader),
        directory=_directory(reader),
        data=reader.data,
    )


def _pieces(reader: _Reader, count: int) -> list[tuple[str, float]]:
    """The unigram vocabulary in id order: (text, log-probability)."""
    (text_length,) = reader.unpack("Q")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    text = reader.text(text_length)
    if offsets[-1] > text_length or (np.diff(offsets.astype(np.int64)) <= 0).any():
        raise E5Error("its piece offsets are out of order.")
    if not np.isfinite(scores).all():
        raise E5Error("it scores a piece with a value that is not a finite number.")
    bounds = offsets.tolist()
    try:
        names = [text[a:b].decode() for a, b in pairwise(bounds)]
    except UnicodeDecodeError:
        raise E5Error("a piece of its vocabulary is not UTF-8.") from None
    if len(set(names)) != count:
        raise E5Error("its vocabulary names a piece twice.")
    return list(zip(names, scores.tolist(), strict=True))


def _replacements(reader: _Reader) -> dict[str, str]:
    """What the tokenizer writes in place of single characters, before it looks for pieces."""
    count, length = reader.unpack("iI")
    end = reader.position + length
    table = {}
    for _ in range(count):
        code_point, outputs = reader.unpack("IB")
        try:
            table[chr(code_point)] = "".join(map(chr, reader.unpack(f"{outputs}I")))
        except (ValueError, OverflowError):
            raise E5Error("its table of replacements names an impossible character.") from None
    if reader.position != end:
        raise E5Error("its table of replacements does not have the length it announces.")
    return table


def _directory(reader: _Reader) -> dict[str, Tensor]:
    (count,) = reader.unpack("i")
    directory = {}
    for _ in range(count):
        (name_length,) = reader.unpack("H")
        name = reader.text(name_length).decode("ascii", "replace")
        kind, elements, offset, nbytes = reader.unpack("BIQQ")
        if kind == F32:
            expected = elements * 4
        elif kind == Q4_0 and elements % BLOCK == 0:
            expected = elements // BLOCK * Q4_BLOCK.itemsize
        else:
            raise E5Error(f"tensor {name!r} is of an unknown kind ({kind}).")
        if nbytes != expected or offset + nbytes > len(reader.data):
            raise E5Error(f"tensor {name!r} does not lie inside it.")
        directory[name] = Tensor(kind, elements, offset, nbytes)
    return directory
