"""Writes small `E5S1` files with random weights, and damages them: no download, no real model."""

import struct
from pathlib import Path

import numpy as np

HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 32, 2, 4, 64, 40
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = [
    "▁",
    *"abcdefghij",
    "▁ab",
    "▁cab",
    "age",
    "：",
    "～",
    "你",
    "好",
    "▁é",
    "é",
    ":",
    "株",
    "(",
    ")",
]
PIECES = [(piece, 0.0) for piece in SPECIAL] + [
    (piece, -1.0 - 0.1 * rank) for rank, piece in enumerate(WORDS)
]
VOCABULARY = len(PIECES) + 2  # the real file, too, has more rows than pieces
REPLACEMENTS = {"\x01": "", "\n": " ", "\u200b": " ", "\u3000": " ", "ａ": "a", "㈱": "(株)"}


def write_tiny_e5(path: Path, seed: int = 0, scale: float = 0.02) -> Path:
    path.write_bytes(tiny_e5_bytes(seed, scale))
    return path


def tiny_e5_bytes(seed: int = 0, scale: float = 0.02) -> bytes:
    names = [piece.encode() for piece, _ in PIECES]
    offsets = np.cumsum([0, *map(len, names)]).astype("<u4").tobytes()
    scores = np.array([score for _, score in PIECES], "<f4").tobytes()
    text = b"".join(names)
    table = b"".join(
        struct.pack(f"<IB{len(to)}I", ord(character), len(to), *map(ord, to))
        for character, to in REPLACEMENTS.items()
    )
    head = struct.pack("<4sI7ifi", b"E5S1", 1, HIDDEN, LAYERS, HEADS, WIDE, VOCABULARY, POSITIONS,
                       2, 1e-12, 32)  # fmt: skip
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(text)) + offsets + scores + text
    head += struct.pack("<iI", len(REPLACEMENTS), len(table)) + table
    return head + _tensors(len(head), np.random.default_rng(seed), scale)


def _tensors(start: int, rng: np.random.Generator, scale: float) -> bytes:
    """The directory and the data of every tensor; `start` is where the directory begins."""
    sizes = {"emb.word": VOCABULARY * HIDDEN, "emb.pos": POSITIONS * HIDDEN, "emb.type": 2 * HIDDEN}
    sizes |= {"emb.ln.w": HIDDEN, "emb.ln.b": HIDDEN}
    for layer in range(LAYERS):
        for part in ("q", "k", "v", "ao"):
            sizes |= {f"l{layer}.{part}.w": HIDDEN * HIDDEN, f"l{layer}.{part}.b": HIDDEN}
        sizes |= {f"l{layer}.fi.w": WIDE * HIDDEN, f"l{layer}.fi.b": WIDE}
        sizes |= {f"l{layer}.fo.w": HIDDEN * WIDE, f"l{layer}.fo.b": HIDDEN}
        for part in ("aln", "oln"):
            sizes |= {f"l{layer}.{part}.w": HIDDEN, f"l{layer}.{part}.b": HIDDEN}
    offset = start + 4 + sum(2 + len(name) + 21 for name in sizes)
    directory, data = struct.pack("<i", len(sizes)), b""
    for name, size in sizes.items():
        packed = name == "emb.word" or (name.endswith(".w") and "ln" not in name)
        values = (
            q4_0(rng, size, scale) if packed else rng.normal(0, 0.1, size).astype("<f4").tobytes()
        )
        if "ln.w" in name:
            values = np.ones(size, "<f4").tobytes()
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", packed, size, offset + len(data), len(values))
        data += values
    return directory + data


def q4_0(rng: np.random.Generator, size: int, scale: float) -> bytes:
    blocks = b""
    for _ in range(size // 32):
        blocks += np.float16(scale).tobytes() + rng.integers(0, 256, 16, dtype=np.uint8).tobytes()
    return blocks
