"""The lean step: one call of compiled code for a whole pass over one to eight tokens.

For models of the Llama and Qwen2 kind on the CPU. It reads packed weights, computes in float32, and
reads and appends to the same cache as the transformers module, so that a prompt can be read by the
one and continued by the other. Knows a module and its weights; knows no text and no sampling.
"""

from __future__ import annotations

import ctypes
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from generation.kernel_library import (
    KernelUnavailable,
    Layer,
    Matrix,
    Model,
    Step,
    load_kernel,
)
from generation.kv_cache import KVCache
from generation.lean_weights import LayerWeights, LeanWeights, pack_gguf
from generation.packed import PackedMatrix, aligned
from generation.progress import Progress, silent

MODEL_TYPES = frozenset({"llama", "qwen2"})
ROTARY_TYPES = frozenset({"default", "linear", "llama3"})  # whose frequencies never change
MAX_ROWS = 8  # tokens in one step, over all rows of the batch
CACHE_TYPES = {torch.float32: 0, torch.bfloat16: 1}
# Weights that one more core must have to read in each step to be worth the waiting for it. Full
# steps a second with one core and with two (`benchmarks.decode --threads`, 256 tokens): qwen-0.5b
# (424 MB) 54 and 91; smollm2 (97 MB) 209 and 294, but 207 and 78 while something else, as the page
# may, keeps one of the two cores busy.
BYTES_A_CORE = 200e6


class LeanDecoder:
    """A model ready for `step`. Safe to be called from several threads, which then take turns."""

    def __init__(
        self,
        hf_model: Any,
        weights: LeanWeights,
        threads: int | None = None,
        progress: Progress = silent,
    ) -> None:
        """`threads` is how many cores a step uses, by default as many as torch does.

        Raises KernelUnavailable for a model of another kind, or where the kernel cannot be built.
        """
        require_supported(hf_model)
        self.weights = weights
        self.torch_threads = torch.get_num_threads()  # for what torch computes between the steps
        self.vocab_size = weights.head.rows
        self._library = load_kernel(progress)
        self._dtype = hf_model.dtype if hf_model.dtype in CACHE_TYPES else torch.float32
        self._model, self._kept = _model(hf_model, weights)
        handle = self._library.lean_new(
            ctypes.byref(self._model), threads or torch.get_num_threads()
        )
        if not handle:
            raise KernelUnavailable("There is too little memory for the decoding kernel.")
        self._handle = ctypes.c_void_p(handle)
        weakref.finalize(self, self._library.lean_free, self._handle)

    @torch.inference_mode()
    def step(self, cache: KVCache, token_ids: Tensor, keep: int = 1) -> Tensor:
        """Append tokens `(B, T)` after what the cache holds; at most MAX_ROWS of them in all.

        Returns float32 logits `(B, keep, V)` for the last `keep` positions. Raises ValueError for
        too many tokens, ids outside the vocabulary, and a cache of another shape.
        """
        batch, tokens = token_ids.shape
        if not 0 < batch * tokens <= MAX_ROWS:
            raise ValueError(f"A lean step takes 1 to {MAX_ROWS} tokens, not {batch * tokens}.")
        ids = np.ascontiguousarray(token_ids.numpy(), dtype=np.int64)
        if ids.min() < 0 or ids.max() >= self.vocab_size:
            raise ValueError(f"Token ids lie between 0 and {self.vocab_size - 1}.")
        past = cache.length
        capacity = self._make_room(cache, batch, tokens)
        keep = min(keep, tokens)
        logits = torch.empty(batch, keep, self.vocab_size)
        pointers = ctypes.c_void_p * len(cache.layers)
        step = Step(
            batch=batch,
            tokens=tokens,
            keep=keep,
            capacity=capacity,
            bf16_cache=CACHE_TYPES[cache.layers[0].keys.dtype],
            token_ids=ids.ctypes.data,
            past=ctypes.cast((ctypes.c_int64 * batch)(*[past] * batch), ctypes.c_void_p),
            keys=ctypes.cast(
                pointers(*[layer.keys.data_ptr() for layer in cache.layers]), ctypes.c_void_p
            ),
            values=ctypes.cast(
                pointers(*[layer.values.data_ptr() for layer in cache.layers]), ctypes.c_void_p
            ),
            logits=logits.data_ptr(),
        )
        self._library.lean_step(self._handle, ctypes.byref(step))
        for layer in cache.layers:
            layer.length = past + tokens
        return logits

    def _make_room(self, cache: KVCache, batch: int, tokens: int) -> int:
        """The capacity of the cache, after it was allocated or enlarged where it must be."""
        heads, size = int(self._model.kv_heads), int(self._model.head_size)
        for layer in cache.layers:
            if not layer.is_initialized:
                none = torch.empty(batch, heads, 0, size, dtype=self._dtype)
                layer.lazy_initialization(none, none)
            layer.reserve(layer.length + tokens)
            shape = (batch, heads, layer.capacity, size)
            if layer.keys.shape != shape or layer.values.shape != shape:
                raise ValueError(f"The cache holds {tuple(layer.keys.shape)}, not {shape}.")
            if layer.keys.dtype not in CACHE_TYPES or not layer.keys.is_contiguous():
                raise ValueError("A lean step needs a contiguous cache of float32 or bfloat16.")
        return cache.layers[0].capacity


def lean_decoder(
    path: Path, hf_model: Any, progress: Progress = silent
) -> tuple[LeanDecoder | None, str]:
    """A decoder for the weights of a .gguf file, or None; and a sentence saying what it is or why.

    The module, which was converted from that file, goes on reading prompts.
    """
    try:
        require_supported(hf_model)
        if path.suffix != ".gguf":
            raise KernelUnavailable("The decoding kernel reads packed weights of .gguf files only.")
        load_kernel(progress)  # before the work of packing
        weights = pack_gguf(path, hf_model, progress)
        decoder = LeanDecoder(hf_model, weights, useful_threads(weights), progress)
    except KernelUnavailable as error:
        return None, f"torch: {error}"
    return decoder, f"compiled code ({decoder.weights.step_nbytes / 1e6:.0f} MB of weights a token)"


def useful_threads(weights: LeanWeights) -> int:
    """How many cores a step should use: one for each BYTES_A_CORE, as many as torch at most."""
    return max(1, min(torch.get_num_threads(), round(weights.step_nbytes / BYTES_A_CORE)))


def require_supported(hf_model: Any) -> None:
    """Raise KernelUnavailable unless the step computes exactly what this module computes."""
    config = hf_model.config
    problem = None
    rotary = getattr(getattr(hf_model, "model", None), "rotary_emb", None)
    if config.model_type not in MODEL_TYPES or rotary is None:
        problem = f"its architecture is {config.model_type}"
    elif config.hidden_act not in ("silu", "swish"):
        problem = f"its activation is {config.hidden_act}"
    elif set(getattr(config, "layer_types", None) or ()) - {"full_attention"}:
        problem = "some of its layers attend to a window"
    elif rotary.rope_type not in ROTARY_TYPES:
        problem = f"its rotary positions are {rotary.rope_type}"
    elif next(hf_model.parameters()).device.type != "cpu":
        problem = "it is not on the CPU"
    if problem:
        raise KernelUnavailable(f"The decoding kernel does not serve this model: {problem}.")


def _model(hf_model: Any, weights: LeanWeights) -> tuple[Model, list[Any]]:
    """The struct, and what it points to, which must be kept."""
    config, rotary = hf_model.config, hf_model.model.rotary_emb
    frequencies = aligned(rotary.inv_freq.detach().float().cpu().numpy())
    layers = (Layer * len(weights.layers))(*map(_layer, weights.layers))
    model = Model(
        layers=len(weights.layers),
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_size=2 * len(frequencies),
        intermediate=config.intermediate_size,
        epsilon=config.rms_norm_eps,
        rotary_scaling=rotary.attention_scaling,
        rotary_frequencies=frequencies.ctypes.data,
        final_norm=weights.final_norm.ctypes.data,
        embedding=Matrix.of(weights.embedding),
        head=Matrix.of(weights.head),
        layer=layers,
    )
    return model, [frequencies, layers]


def _layer(weights: LayerWeights) -> Layer:
    matrices = {
        name: Matrix.of(value)
        for name, value in vars(weights).items()
        if isinstance(value, PackedMatrix)
    }
    return Layer(
        attention_norm=weights.attention_norm.ctypes.data,
        mlp_norm=weights.mlp_norm.ctypes.data,
        **matrices,
    )
