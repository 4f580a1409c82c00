"""One model on one device: where it may come from, in what precision, and when it stops."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from generation import model as module
from generation.catalogue import CATALOGUE
from generation.errors import ModelError, WeightsError
from generation.model import (
    check_template,
    choose_device,
    choose_precision,
    context_length,
    end_ids,
    load_model,
)
from tests.tiny import tiny_lm, tiny_tokenizer

CPU = torch.device("cpu")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSBOX_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "", "CPU", "cpu:0:0"])
def test_an_unknown_device_lists_the_known_ones(device):
    with pytest.raises(ValueError, match="auto, cpu, cuda, cuda:N, mps"):
        choose_device(device)


def test_the_gpu_is_taken_when_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")


def test_a_device_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("cuda:0") == torch.device("cuda:0")
    with pytest.raises(ModelError, match="no device cuda:1"):
        choose_device("cuda:1")
    with pytest.raises(ModelError, match="no device mps"):
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
        choose_device("mps")


@pytest.mark.parametrize("precision", ["fp16", "float32", "", "int3"])
def test_an_unknown_precision_lists_the_known_ones(precision):
    with pytest.raises(ValueError, match="auto, fp32, bf16"):
        choose_precision(precision, CPU)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [({"avx512_bf16": True}, "bf16"), ({"amx_bf16": True}, "bf16"), ({"avx2": True}, "fp32")],
)
def test_bf16_is_chosen_where_the_cpu_computes_with_it(monkeypatch, capabilities, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert choose_precision("auto", CPU) == expected
    assert choose_precision("fp32", CPU) == "fp32"


@pytest.mark.parametrize("source", ["gpt-5", "./none.gguf", "e5-small", "minilm", "", "none.gguf"])
def test_what_is_no_model_lists_what_is(home, source):
    with pytest.raises(ModelError, match=r"one of smollm2, qwen-0\.5b, a \.gguf file, a folder"):
        load_model(source, device="cpu")


def test_a_folder_and_a_hub_id_load_the_same_way(home, tmp_path, monkeypatch):
    saved = tiny_lm("llama")
    saved.hf_model.save_pretrained(tmp_path / "tiny")
    saved.tokenizer.save_pretrained(tmp_path / "tiny")
    monkeypatch.setattr(module, "fetch_from_hub", lambda source, progress: tmp_path / "tiny")
    for source, name in ((tmp_path / "tiny", "tiny"), ("owner/tiny", "owner/tiny")):
        lm = load_model(source, device="cpu", precision="fp32")
        assert lm.name == name and lm.notice is None and lm.precision == "fp32"
        ids = torch.tensor([lm.encode("hello")])
        assert torch.equal(lm.hf_model(ids).logits, saved.hf_model(ids).logits)
        assert lm.vocab_size == lm.hf_model(ids).logits.shape[-1]


@pytest.mark.parametrize("error", [WeightsError("no network"), ModelError("no memory")])
def test_auto_falls_back_to_the_smaller_model_and_says_so(monkeypatch, error):
    def load(name, *_):
        if name == "qwen-0.5b":
            raise error
        return replace(tiny_lm(), name=name)

    monkeypatch.setattr(module, "_load", load)
    lm = load_model("auto", device="cpu")
    assert lm.name == "smollm2"
    assert "smollm2 was loaded" in lm.notice and str(error) in lm.notice


def test_a_pinned_model_with_another_chat_template_is_refused(smollm2):
    entry = CATALOGUE["smollm2"]
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = smollm2.tokenizer.chat_template
    check_template(entry, tokenizer)
    for changed in (tokenizer.chat_template + " ", tokenizer.chat_template.upper(), None):
        tokenizer.chat_template = changed
        with pytest.raises(ModelError, match="chat template of smollm2 is not the known one"):
            check_template(entry, tokenizer)


def fake_model(eos=None, **values):
    config = SimpleNamespace(**values)
    config.get_text_config = lambda: config
    return SimpleNamespace(config=config, generation_config=SimpleNamespace(eos_token_id=eos))


def test_an_answer_ends_at_every_id_that_anything_calls_its_end():
    tokenizer = tiny_tokenizer()  # its own end is <|im_end|>, and <|endoftext|> is known by name
    assert end_ids(tokenizer, fake_model()) == {256, 258}
    assert end_ids(tokenizer, fake_model(3)) == {3, 256, 258}
    assert end_ids(tokenizer, fake_model([4, 5])) == {4, 5, 256, 258}


@pytest.mark.parametrize(
    ("values", "tokenizer_limit", "expected"),
    [
        ({"max_position_embeddings": 512}, 10**30, 512),
        ({"max_position_embeddings": 512}, 128, 128),
        ({"seq_length": 300}, 10**30, 300),
        ({}, 10**30, module.DEFAULT_CONTEXT),
        ({"max_position_embeddings": None}, 0, module.DEFAULT_CONTEXT),
    ],
)
def test_the_context_is_what_both_model_and_tokenizer_have(values, tokenizer_limit, expected):
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = tokenizer_limit
    assert context_length(tokenizer, fake_model(**values)) == expected


def test_smollm2_knows_its_context_ends_and_size(smollm2):
    assert smollm2.context_length == 8192
    assert smollm2.end_ids == set(
        smollm2.tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    )
    assert smollm2.vocab_size == 49152
    assert smollm2.name == "smollm2" and smollm2.notice is None
    assert smollm2.hf_model.dtype == torch.float32 and not smollm2.hf_model.training


def test_smollm2_answers(smollm2):
    ids = smollm2.encode_chat([{"role": "user", "content": "What is the capital of France?"}])
    output = smollm2.hf_model.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False)
    assert (
        smollm2.decode(output[0, len(ids) :].tolist())
        == "The capital of France is Paris.<|im_end|>"
    )


def test_decoding_does_not_clean_up_spaces(smollm2):
    text = "Don 't do this , please . It 's  two  spaces !"
    assert smollm2.decode(smollm2.encode(text)) == text


def test_sixteen_threads_tokenize_at_once(smollm2):
    messages = [{"role": "user", "content": "Why is the sky blue? 天空 🦊 <|im_end|>"}]
    expected = smollm2.encode_chat(messages)

    def disturb() -> None:
        for length in range(2, 200):  # what makes others fail with "Already borrowed"
            with suppress(RuntimeError):
                smollm2.tokenizer("some text", truncation=True, max_length=length)

    def work(number: int) -> bool:
        text = f"thread {number} " * 20
        return all(
            smollm2.encode_chat(messages) == expected
            and smollm2.decode(smollm2.encode(text)) == text
            for _ in range(20)
        )

    with ThreadPoolExecutor(17) as pool:
        disturbed = pool.submit(disturb)
        assert all(pool.map(work, range(16)))
        disturbed.result()
