"""The loop on a real model, in fp32, against transformers' own `generate`."""

from __future__ import annotations

import pytest
import torch

from generation.beam_search import beam_search
from generation.config import GenerationConfig
from generation.decoding import generate, generate_without_cache, new_cache, prefill
from generation.scoring import score
from generation.step import FinishReason
from generation.streaming import stream_text

QUESTIONS = [
    "What is the capital of France?",
    "Write three sentences about rivers, then a list of two fish.",
    "Use this passage: [1] The notice period is three months to the end of a quarter. "
    "How long is the notice period?",
]


def reference_ids(lm, prompt, **options):
    output = lm.hf_model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        eos_token_id=sorted(lm.end_ids),
        pad_token_id=0,
        do_sample=False,
        **options,
    )
    return output[0, len(prompt) :].tolist()


def chat(lm, question):
    return lm.encode_chat([{"role": "user", "content": question}])


@pytest.mark.parametrize("question", QUESTIONS)
def test_greedy_tokens_equal_those_of_transformers(smollm2, question):
    prompt = chat(smollm2, question)
    steps = list(generate(smollm2, prompt, GenerationConfig(max_new_tokens=48)))
    assert [s.token_id for s in steps] == reference_ids(smollm2, prompt, max_new_tokens=48)


@pytest.mark.parametrize(("num_beams", "length_penalty"), [(2, 1.0), (3, 0.5), (4, 2.0)])
def test_beam_search_equals_that_of_transformers(smollm2, num_beams, length_penalty):
    prompt = chat(smollm2, QUESTIONS[0])
    options = dict(num_beams=num_beams, length_penalty=length_penalty, max_new_tokens=24)
    *_, last = beam_search(smollm2, prompt, GenerationConfig(**options))
    assert list(last.best.token_ids) == reference_ids(smollm2, prompt, **options)


def test_the_cache_changes_no_token(smollm2):
    prompt = chat(smollm2, QUESTIONS[2])
    config = GenerationConfig(max_new_tokens=12, temperature=0.8, top_p=0.9, seed=5)
    cached = [s.token_id for s in generate(smollm2, prompt, config)]
    assert cached == [s.token_id for s in generate_without_cache(smollm2, prompt, config)]


def test_an_answer_ends_by_itself_and_its_control_token_is_not_shown(smollm2):
    prompt = chat(smollm2, QUESTIONS[0])
    pairs = list(
        stream_text(smollm2, generate(smollm2, prompt, GenerationConfig(max_new_tokens=64)))
    )
    text = "".join(piece for _, piece in pairs)
    assert pairs[-1][0].finish_reason is FinishReason.EOS
    assert "Paris" in text
    assert "<|" not in text


def test_scoring_an_answer_gives_the_log_probabilities_of_writing_it(smollm2):
    prompt = chat(smollm2, QUESTIONS[2])
    steps = list(generate(smollm2, prompt, GenerationConfig(max_new_tokens=20)))
    scores = score(smollm2, prompt, [s.token_id for s in steps])
    for step, one in zip(steps, scores, strict=True):
        assert one.logprob == pytest.approx(step.logprob, abs=1e-3)
        assert one.rank == step.rank == 1


def test_packed_weights_give_the_tokens_and_logits_of_the_module_in_fp32(smollm2):
    assert smollm2.lean is not None, smollm2.kernel
    cache = new_cache(smollm2, 512)
    token = prefill(smollm2, cache, chat(smollm2, QUESTIONS[1])).argmax(dim=-1, keepdim=True)
    twin = cache.fork()
    for _ in range(48):
        with torch.inference_mode():
            expected = smollm2.hf_model(input_ids=token, cache=twin, use_cache=True).logits
        logits = smollm2.lean.step(cache, token)
        torch.testing.assert_close(logits, expected, rtol=0, atol=3e-4)
        token = expected[:, -1].argmax(dim=-1, keepdim=True)
        assert logits[:, -1].argmax(dim=-1, keepdim=True).equal(token)
