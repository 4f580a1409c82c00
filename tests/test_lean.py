"""The lean step against the transformers module, which it must equal."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from generation.decoding import forward, new_cache, prefill
from generation.kernel_library import KernelUnavailable, load_kernel
from generation.lean import MAX_ROWS, LeanDecoder, lean_decoder
from generation.lean_weights import pack_module, pack_module_int8
from generation.model import LanguageModel
from tests.tiny import tiny_lm, tiny_tokenizer

# One grouped, one with a key head for each query head; odd sizes leave parts of tiles empty.
SHAPES = {
    "llama": LlamaConfig(
        vocab_size=259,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=72,
        max_position_embeddings=256,
    ),
    "llama-tied-biased": LlamaConfig(
        vocab_size=259,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=24,
        intermediate_size=100,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
        max_position_embeddings=256,
    ),
    "llama-head-64": LlamaConfig(
        vocab_size=259,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=64,
        intermediate_size=64,
        max_position_embeddings=256,
    ),
    "qwen2": Qwen2Config(
        vocab_size=259,
        hidden_size=56,
        num_hidden_layers=2,
        num_attention_heads=7,
        num_key_value_heads=1,
        intermediate_size=80,
        max_position_embeddings=256,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    ),
}


def random_lm(shape: str, dtype: torch.dtype = torch.float32) -> LanguageModel:
    """A random model in which every parameter matters, biases and norms too."""
    torch.manual_seed(1)
    config = copy.deepcopy(SHAPES[shape])
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name else 0.0, 0.25)
    return LanguageModel(
        name=shape,
        tokenizer=tiny_tokenizer(),
        hf_model=model.to(dtype).eval(),
        context_length=256,
        end_ids=frozenset(),
        device=torch.device("cpu"),
        precision="fp32",
    )


def read(lm: LanguageModel, rows: int, length: int = 20):
    """A cache after a random prompt in `rows` rows, and the logits `(rows, V)` after it."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 256, (rows, length), generator=generator)
    cache = new_cache(lm, 256)
    with torch.inference_mode():
        output = lm.hf_model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
    return cache, output.logits[:, -1].float()


@torch.inference_mode()
def module_step(lm: LanguageModel, cache, ids):
    return lm.hf_model(input_ids=ids, cache=cache, use_cache=True).logits.float()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_greedy_tokens_and_their_logits_equal_those_of_the_module(shape, threads):
    lm = random_lm(shape)
    lean = LeanDecoder(lm.hf_model, pack_module(lm.hf_model), threads)
    cache, logits = read(lm, 1)
    twin = cache.fork()
    token = logits.argmax(dim=-1, keepdim=True)
    for _ in range(100):
        expected, got = module_step(lm, twin, token), lean.step(cache, token)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)
        token = expected[:, -1].argmax(dim=-1, keepdim=True)
        assert got[:, -1].argmax(dim=-1, keepdim=True).equal(token)
    assert cache.length == twin.length == 120


@pytest.mark.parametrize(("rows", "tokens"), [(2, 1), (3, 1), (8, 1), (1, 2), (1, 5), (2, 4)])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_and_drafted_tokens_in_one_step_equal_the_module(shape, rows, tokens):
    lm = random_lm(shape)
    lean = LeanDecoder(lm.hf_model, pack_module(lm.hf_model), 2)
    cache, _ = read(lm, rows)
    twin = cache.fork()
    ids = torch.randint(0, 256, (rows, tokens))
    torch.testing.assert_close(
        lean.step(cache, ids, keep=tokens), module_step(lm, twin, ids), rtol=0, atol=1e-4
    )
    last = module_step(lm, twin, ids)[:, -1:]  # the module's turn, on what the step has appended
    torch.testing.assert_close(lean.step(cache, ids), last, rtol=0, atol=1e-4)


def test_the_module_continues_what_the_step_has_appended():
    lm = random_lm("qwen2")
    lean = LeanDecoder(lm.hf_model, pack_module(lm.hf_model), 2)
    cache, twin = new_cache(lm, 4), new_cache(lm, 4)  # empty, and too small
    ids = torch.tensor([[7, 8, 9, 10, 11, 12]])
    lean.step(cache, ids)
    module_step(lm, twin, ids)
    torch.testing.assert_close(
        module_step(lm, cache, ids), module_step(lm, twin, ids), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_bfloat16_weights_and_cache_are_read_as_they_are(shape):
    lm = random_lm(shape, torch.bfloat16)
    exact = copy.deepcopy(lm.hf_model).float()  # the same weights, computing in float32
    lean = LeanDecoder(lm.hf_model, pack_module(lm.hf_model), 2)
    cache, logits = read(lm, 1)
    twin = cache.fork()
    for layer in twin.layers:
        layer.keys, layer.values = layer.keys.float(), layer.values.float()
    token = logits.argmax(dim=-1, keepdim=True)
    with torch.inference_mode():
        expected = exact(input_ids=token, cache=twin, use_cache=True).logits
    # What differs is that the new key and value are rounded when they are kept.
    torch.testing.assert_close(lean.step(cache, token), expected, rtol=0, atol=0.05)
    assert cache.layers[0].keys.dtype == torch.bfloat16


def test_eight_bits_change_logits_by_what_rounding_the_weights_changes():
    lm = random_lm("llama")
    weights = pack_module_int8(lm.hf_model)
    rounded = copy.deepcopy(lm.hf_model)
    lean = LeanDecoder(lm.hf_model, weights, 2)
    with torch.no_grad():
        for module in rounded.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
                module.weight.copy_(rounded_to_int8(module.weight))
    cache, logits = read(lm, 1)
    token = logits.argmax(dim=-1, keepdim=True)
    with torch.inference_mode():
        expected = rounded(input_ids=token, cache=cache.fork(), use_cache=True).logits
    torch.testing.assert_close(lean.step(cache, token), expected, rtol=0, atol=1e-4)


def rounded_to_int8(weight):
    padded = torch.nn.functional.pad(weight, (0, -weight.shape[1] % 32)).unflatten(1, (-1, 32))
    scale = padded.abs().amax(-1, keepdim=True) / 127
    return ((padded / scale).round() * scale.half().float()).flatten(1)[:, : weight.shape[1]]


def test_what_does_not_fit_is_refused_in_a_sentence():
    lm = random_lm("llama")
    lean = LeanDecoder(lm.hf_model, pack_module(lm.hf_model), 1)
    cache, _ = read(lm, 1)
    with pytest.raises(ValueError, match="1 to 8 tokens"):
        lean.step(cache, torch.zeros(1, MAX_ROWS + 1, dtype=torch.long))
    with pytest.raises(ValueError, match="between 0 and 258"):
        lean.step(cache, torch.tensor([[259]]))
    with pytest.raises(ValueError, match="The cache holds"):
        lean.step(cache, torch.zeros(2, 1, dtype=torch.long))
    assert cache.length == 20


@pytest.mark.parametrize("architecture", ["gpt2", "gemma"])
def test_another_architecture_is_refused(architecture):
    lm = tiny_lm(architecture)
    with pytest.raises(KernelUnavailable, match=architecture):
        LeanDecoder(lm.hf_model, None)


def test_prefill_then_steps_equal_the_plain_loop():
    lm = random_lm("llama")
    lean = LeanDecoder(lm.hf_model, pack_module(lm.hf_model), 2)
    prompt = list(range(40))
    cache, twin = new_cache(lm, 64), new_cache(lm, 64)
    token = prefill(lm, cache, prompt).argmax(dim=-1, keepdim=True)
    prefill(lm, twin, prompt)
    for _ in range(16):
        expected = module_step(lm, twin, token)[:, -1]
        assert lean.step(cache, token)[:, -1].argmax() == expected.argmax()
        token = expected.argmax(dim=-1, keepdim=True)


def test_without_a_compiler_the_module_decodes_and_the_reason_is_said(monkeypatch):
    monkeypatch.setattr("generation.kernel_library.COMPILERS", ())
    lm = random_lm("llama")
    decoder, kernel = lean_decoder(Path("model.gguf"), lm.hf_model)
    assert decoder is None
    assert kernel == "torch: No C++ compiler was found (c++, g++ or clang++)."
    assert forward(lm, new_cache(lm, 8), torch.tensor([[1, 2]])).shape == (1, 1, 259)


def test_a_compiler_that_fails_is_quoted(monkeypatch, tmp_path):
    monkeypatch.setenv("GLASSBOX_HOME", str(tmp_path))
    monkeypatch.setattr("generation.kernel_library.FLAGS", ("-no-such-flag",))
    with pytest.raises(KernelUnavailable, match=r"could not build the decoding kernel: .*no-such"):
        load_kernel()
    assert not list((tmp_path / "cache" / "kernel").glob("*"))
