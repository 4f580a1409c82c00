"""The cache's own operations: what is appended, cropped, forked and reordered."""

from __future__ import annotations

import pytest
import torch
from transformers import MambaConfig, Qwen2Config

from generation.config import GenerationConfig
from generation.decoding import decode_step, generate, new_cache, prefill
from generation.kv_cache import KVCache, PreallocatedLayer
from tests.tiny import ARCHITECTURES, tiny_config, tiny_lm

PROMPT = list(range(40, 60))


def states(length, rows=1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 2, length, 8, generator=generator)


def test_what_was_appended_is_returned_in_order_without_a_copy():
    layer = PreallocatedLayer(10)
    first, second = states(4), states(3, seed=1)
    layer.update(first, first)
    keys, values = layer.update(second, second + 1)
    assert torch.equal(keys, torch.cat([first, second], dim=2))
    assert torch.equal(values, torch.cat([first, second + 1], dim=2))
    assert keys.data_ptr() == layer.keys.data_ptr()


def test_it_grows_when_more_comes_than_was_announced():
    layer = PreallocatedLayer(4)
    parts = [states(3, seed=n) for n in range(5)]
    for part in parts:
        keys, _ = layer.update(part, part)
    assert torch.equal(keys, torch.cat(parts, dim=2))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_cropping_and_going_on_equals_never_having_read_the_rest(architecture):
    lm = tiny_lm(architecture)
    config = GenerationConfig(max_new_tokens=20)
    cache = new_cache(lm, 100)
    prefill(lm, cache, [*PROMPT[:12], 1, 2, 3])
    cache.crop(-3)
    assert cache.length == 12
    ours = [s.token_id for s in generate(lm, PROMPT, config, cache=cache)]
    assert ours == [s.token_id for s in generate(lm, PROMPT, config)]


def test_a_fork_is_independent():
    lm = tiny_lm()
    cache = new_cache(lm, 100)
    prefill(lm, cache, PROMPT)
    fork = cache.fork()
    there = decode_step(lm, fork, torch.tensor([[7]]))
    decode_step(lm, cache, torch.tensor([[9]]))
    cache.crop(-1)
    assert torch.equal(decode_step(lm, cache, torch.tensor([[7]])), there)
    assert fork.length == cache.length == len(PROMPT) + 1


def test_reordering_selects_rows_and_may_change_their_number():
    layer = PreallocatedLayer(10)
    rows = states(4, rows=2)
    layer.update(rows, rows)
    layer.reorder_cache(torch.tensor([1, 1, 0]))
    keys, _ = layer.update(states(1, rows=3), states(1, rows=3))
    assert torch.equal(keys[:, :, :4], rows[[1, 1, 0]])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_batch_of_rows_gives_what_each_row_gives_alone(architecture):
    lm = tiny_lm(architecture)
    texts = [[7, 9, 11], [8, 8, 8], [200, 100, 50]]
    together = new_cache(lm, 100)
    prefill(lm, together, PROMPT)
    together.reorder(torch.zeros(3, dtype=torch.long))
    rows = [
        decode_step(lm, together, torch.tensor(tokens)[:, None])
        for tokens in zip(*texts, strict=True)
    ]
    for number, text in enumerate(texts):
        alone = new_cache(lm, 100)
        prefill(lm, alone, PROMPT)
        for step, token_id in enumerate(text):
            logits = decode_step(lm, alone, torch.tensor([[token_id]]))
            torch.testing.assert_close(rows[step][number], logits[0], atol=1e-4, rtol=1e-4)
            assert rows[step][number].argmax() == logits[0].argmax()


def test_its_size_is_what_the_formula_says():
    lm = tiny_lm()
    cache = new_cache(lm, 100)
    prefill(lm, cache, PROMPT)
    config = lm.hf_model.config
    per_token = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 4
    assert cache.nbytes == 100 * per_token


def test_a_sliding_window_is_respected_with_all_positions_kept():
    from transformers import Qwen2ForCausalLM

    config = tiny_config("qwen2", 256, 259)
    assert isinstance(config, Qwen2Config)
    windowed = Qwen2Config(
        **{
            **config.to_diff_dict(),
            "use_sliding_window": True,
            "sliding_window": 8,
            "max_window_layers": 0,
            "layer_types": ["sliding_attention"] * 2,
        }
    )
    lm = tiny_lm("qwen2", end_ids=frozenset())
    model = Qwen2ForCausalLM(windowed).eval()
    model.load_state_dict(lm.hf_model.state_dict())
    lm.hf_model = model
    theirs = model.generate(
        torch.tensor([PROMPT]), do_sample=False, max_new_tokens=30, pad_token_id=0
    )[0, len(PROMPT) :].tolist()
    ours = [s.token_id for s in generate(lm, PROMPT, GenerationConfig(max_new_tokens=30))]
    assert ours == theirs


def test_models_that_keep_another_state_are_refused():
    with pytest.raises(ValueError, match="layers"):
        KVCache.for_config(MambaConfig(num_hidden_layers=2), 10)
