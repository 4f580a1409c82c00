"""The compiled decoding kernel: built on first use by the system's C++ compiler, called by ctypes.

The source lies in `kernel/`; what is built is kept in the cache under a hash of the source, of the
flags and of what the compiler says about itself and this processor. A call through ctypes lets go
of the interpreter's lock. Without a compiler, or where building fails, KernelUnavailable says why.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_void_p
from pathlib import Path

from generation.packed import PackedMatrix
from generation.progress import Progress, silent
from generation.storage import cache_dir, locked

SOURCE = Path(__file__).with_name("kernel")
MAIN = "step.cpp"
COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-O3", "-std=gnu++20", "-shared", "-fPIC", "-pthread", "-fopenmp-simd", "-w")
NATIVE = (("-march=native", "-mprefer-vector-width=512"), ("-march=native",), ("-mcpu=native",), ())
TIMEOUT = 300  # seconds for one compilation, which takes about ten


class KernelUnavailable(RuntimeError):
    """The kernel cannot be built or loaded here. Says why, for the person."""


class Matrix(Structure):
    """`struct Matrix` of kernel/matrix.h."""

    _fields_ = (
        ("kind", c_int32),
        ("half_scales", c_int32),
        ("rows", c_int64),
        ("columns", c_int64),
        ("words", c_void_p),
        ("scales", c_void_p),
        ("minimums", c_void_p),
        ("bias", c_void_p),
        ("zero", c_float),
        ("padding", c_int32),
    )

    @classmethod
    def of(cls, packed: PackedMatrix) -> Matrix:
        """Points into the arrays of `packed`, which must be kept for as long as this is used."""
        arrays = (packed.words, packed.scales, packed.minimums, packed.bias)
        pointers = [None if array is None else array.ctypes.data for array in arrays]
        half = packed.scales is not None and packed.scales.itemsize == 2
        return cls(packed.kind, half, packed.rows, packed.columns, *pointers, packed.zero, 0)


class Layer(Structure):
    """`struct Layer` of kernel/decoder.h."""

    _fields_ = (
        *((name, c_void_p) for name in ("attention_norm", "mlp_norm")),
        *((name, Matrix) for name in ("query", "key", "value", "output", "gate", "up", "down")),
    )


class Model(Structure):
    """`struct Model` of kernel/decoder.h."""

    _fields_ = (
        *((name, c_int64) for name in ("layers", "hidden", "heads", "kv_heads", "head_size")),
        ("intermediate", c_int64),
        ("epsilon", c_float),
        ("rotary_scaling", c_float),
        ("rotary_frequencies", c_void_p),
        ("final_norm", c_void_p),
        ("embedding", Matrix),
        ("head", Matrix),
        ("layer", POINTER(Layer)),
    )


class Step(Structure):
    """`struct Step` of kernel/decoder.h."""

    _fields_ = (
        *((name, c_int64) for name in ("batch", "tokens", "keep", "capacity", "bf16_cache")),
        *((name, c_void_p) for name in ("token_ids", "past", "keys", "values", "logits")),
    )


def load_kernel(
    progress: Progress = silent, natives: Sequence[tuple[str, ...]] = NATIVE
) -> ctypes.CDLL:
    """The library, built if it is not in the cache. Raises KernelUnavailable.

    `natives` are sets of flags for this processor, the first that the compiler takes being used.
    """
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise KernelUnavailable("No C++ compiler was found (c++, g++ or clang++).")
    sources = sorted(SOURCE.iterdir())
    text = b"".join(path.name.encode() + path.read_bytes() for path in sources if path.is_file())
    failure = ""
    for native in natives:
        try:
            described = _run(compiler, *native, "-dM", "-E", "-x", "c++", os.devnull)
            digest = hashlib.sha256(
                b"\0".join((text, " ".join(FLAGS + native).encode(), described))
            )
            return _declared(
                ctypes.CDLL(str(_built(compiler, native, digest.hexdigest(), progress)))
            )
        except (OSError, subprocess.SubprocessError) as error:
            failure = _reason(error)
    raise KernelUnavailable(f"{compiler} could not build the decoding kernel: {failure}")


def _built(compiler: str, native: tuple[str, ...], digest: str, progress: Progress) -> Path:
    folder = cache_dir() / "kernel"
    library = folder / f"{digest}.so"
    label = "Compiling the decoding kernel for this processor (once)"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with locked(f"kernel-{digest[:16]}", label, progress):
        if not library.exists():
            progress(label, 0, 1)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".partial-") as scratch:
                made = Path(scratch) / "kernel.so"
                _run(compiler, *FLAGS, *native, str(SOURCE / MAIN), "-o", str(made))
                os.replace(made, library)
            progress(label, 1, 1)
    return library


def _run(*command: str) -> bytes:
    return subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT).stdout


def _reason(error: Exception) -> str:
    text = getattr(error, "stderr", None) or str(error).encode()
    return text.decode("utf-8", "replace").strip().partition("\n")[0]


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """With the types of its functions, after a check that both sides mean the same structs."""
    library.lean_layout.restype = c_int64
    sizes = [library.lean_layout(which) for which in range(4)]
    if sizes != [ctypes.sizeof(struct) for struct in (Matrix, Layer, Model, Step)]:
        raise KernelUnavailable("The decoding kernel was built with another layout of its structs.")
    library.lean_new.restype = c_void_p
    library.lean_new.argtypes = (POINTER(Model), ctypes.c_int)
    library.lean_free.argtypes = (c_void_p,)
    library.lean_free.restype = None
    library.lean_step.argtypes = (c_void_p, POINTER(Step))
    library.lean_step.restype = None
    library.lean_product.argtypes = (POINTER(Matrix), c_void_p, ctypes.c_int, c_void_p)
    library.lean_product.restype = None
    library.lean_row.argtypes = (POINTER(Matrix), c_int64, c_void_p)
    library.lean_row.restype = None
    return library
