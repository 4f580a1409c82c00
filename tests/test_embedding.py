"""The Embedder: nothing is cut, spans are exact, threads may share it, and vectors are sound."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.e5 import load_e5
from rag.embedding import Embedder, EmbeddingError, EmbeddingStopped
from tests.tiny_e5 import HIDDEN, POSITIONS, write_tiny_e5

LONG = "ab cab " * 60  # 120 tokens, three times what the tiny model takes at once


def load(folder, **options):
    path = write_tiny_e5(folder / "tiny.bin")
    return Embedder(path, cache_dir=folder, device="cpu", **{"precision": "fp32", **options})


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return load(tmp_path_factory.mktemp("tiny"))


# Vectors


def test_vectors_are_float32_of_length_one_in_the_order_of_the_texts(tiny):
    texts = ["ab", LONG, "", "cab age", "好"]
    vectors = tiny.embed_passages(texts)
    assert vectors.shape == (5, HIDDEN) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(tiny.embed_passages([text])[0], vector, atol=2e-6)


def test_no_texts_give_no_vectors(tiny):
    assert tiny.embed_passages([]).shape == (0, HIDDEN)


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\ud800", "a\udfffb", "\x01", "<s></s>"])
def test_odd_texts_have_vectors(tiny, text):
    assert np.isfinite(tiny.embed_query(text)).all()
    assert np.isfinite(tiny.embed_passages([text])).all()


def test_queries_and_passages_have_their_own_prefix(tiny):
    [passage] = tiny.embed_passages(["ab"])
    assert not np.allclose(tiny.embed_query("ab"), passage, atol=1e-3)


def test_vectors_are_those_of_sentence_transformers(tmp_path, tiny):
    texts = ["ab cab", "好 age (株)"]
    expected = load_e5(write_tiny_e5(tmp_path / "tiny.bin"), tmp_path).encode(
        texts, prompt_name="passage"
    )
    np.testing.assert_allclose(tiny.embed_passages(texts), expected, atol=2e-6)


def test_a_vector_that_is_not_finite_never_leaves(tmp_path):
    broken = load(tmp_path)
    with torch.no_grad():
        broken._model[0].auto_model.embeddings.LayerNorm.bias[0] = float("nan")
    with pytest.raises(EmbeddingError, match="not finite"):
        broken.embed_query("ab")
    with pytest.raises(EmbeddingError, match="not finite"):
        broken.embed_passages(["ab", "cab"])


# Long texts


def test_the_end_of_a_long_passage_counts(tiny):
    [whole] = tiny.embed_passages([LONG])
    [other_end] = tiny.embed_passages([LONG[:-20] + "age age age age age "])
    assert whole @ other_end < 0.9999


def test_a_long_passage_is_the_mean_of_its_windows(tiny):
    words = LONG.split()  # 120, a token each
    size = tiny.max_tokens
    parts = [" ".join(words[start : start + size]) for start in range(0, len(words), size)]
    weights = [len(part.split()) for part in parts]
    mean = np.average(tiny.embed_passages(parts), axis=0, weights=weights)
    [whole] = tiny.embed_passages([" ".join(words)])
    assert len(parts) == 4
    np.testing.assert_allclose(whole, mean / np.linalg.norm(mean), atol=1e-5)


def test_every_token_is_in_exactly_one_window(tiny):
    for count in range(1, 4 * POSITIONS):
        windows = list(tiny._windows(["ab " * count], "passage: "))
        assert all(len(window.ids) <= POSITIONS for window in windows)
        assert sum(window.content for window in windows) == count + 1  # and the space at the end


def test_max_tokens_is_what_fits_in_one_window(tiny):
    for tokens, windows in ((tiny.max_tokens, 1), (tiny.max_tokens + 1, 2)):
        text = "好" * (tokens - 1)  # the space before the first is a token, too
        assert len(tiny.token_spans(text)) == tokens
        assert len(list(tiny._windows([text], "passage: "))) == windows


# Spans


def covered(text, spans):
    return {place for start, end in spans for place in range(start, end)}


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("ab  cab\n\nab ", ["ab", "cab", "ab", ""]),
        ("你好", ["", "你", "好"]),
        ("a\x01b", ["a\x01b"]),
        ("\x01ab\u200b", ["\x01ab", "\u200b"]),
        ("e\u0301 cab", ["e\u0301", "cab"]),
        ("㈱a", ["", "", "", "㈱", "a"]),
        ("ab 👨‍👩‍👧 ab", ["ab", "", "👨", "\u200d", "👩", "\u200d", "👧", "ab"]),
        ("ⰀⰁⰂ", ["", "Ⰰ", "Ⰱ", "Ⰲ"]),  # unknown, and one token to the model
        ("", []),
    ],
)
def test_spans_are_the_characters_of_the_tokens(tiny, text, tokens):
    assert [text[start:end] for start, end in tiny.token_spans(text)] == tokens


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        st.sampled_from("ab c\n\u3000\u200b\x01e\u0301\u0323你👩\u200d㈱ａ～\ud800<s>"), max_size=40
    )
)
def test_spans_cover_all_but_white_space_in_order(tiny, text):
    spans = tiny.token_spans(text)
    assert spans == sorted(spans)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(before[1] <= after[0] or before == after for before, after in pairwise(spans))
    missing = set(range(len(text))) - covered(text, spans)
    assert all(text[place].isspace() for place in missing)


# Many at once, progress, stopping


def test_sixteen_threads_get_what_one_gets(tiny):
    texts = [f"ab {'cab ' * (n % 7)}好" for n in range(32)]
    alone = [tiny.embed_query(text) for text in texts]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(tiny.embed_query, texts))
        spans = list(pool.map(tiny.token_spans, texts))
    np.testing.assert_allclose(together, alone, atol=2e-6)
    assert spans == [tiny.token_spans(text) for text in texts]


def test_progress_ends_at_the_total(tiny):
    calls = []
    tiny.embed_passages([LONG] * 300, progress=lambda *call: calls.append(call))
    assert len(calls) > 1
    assert [done for _, done, _ in calls] == sorted({done for _, done, _ in calls})
    assert calls[-1][1] == calls[-1][2]


def test_stopping_ends_the_work_between_two_batches(tiny):
    calls = []
    with pytest.raises(EmbeddingStopped):
        tiny.embed_passages(
            [LONG] * 300, progress=lambda *_: calls.append(1), should_stop=lambda: len(calls) == 2
        )
    assert len(calls) == 2


# Identity and options


def test_the_identity_changes_with_weights_precision_and_prefix(tmp_path, tiny):
    same, bf16 = load(tmp_path), load(tmp_path, precision="bf16")
    other = Embedder(
        write_tiny_e5(tmp_path / "b.bin", seed=1), cache_dir=tmp_path, precision="fp32"
    )
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(settings.read_text().replace('"passage: "', '"text: "'))
    prefixed = Embedder(folder, cache_dir=tmp_path, precision="fp32")
    assert same.identity == tiny.identity
    assert len({tiny.identity, bf16.identity, other.identity, prefixed.identity}) == 4


def test_bf16_vectors_stay_close(tmp_path, tiny):
    texts = ["ab cab", "好 age", LONG]
    vectors = load(tmp_path, precision="bf16").embed_passages(texts)
    assert ((vectors * tiny.embed_passages(texts)).sum(axis=1) > 0.999).all()


@pytest.mark.parametrize("precision", ["int8", ""])
def test_an_unknown_precision_is_an_error(tmp_path, precision):
    with pytest.raises(ValueError, match="precision must be"):
        load(tmp_path, precision=precision)


# The real weights


def test_the_real_embedder_takes_508_tokens(embedder):
    assert (embedder.dimension, embedder.max_tokens) == (384, 508)


def test_meaning_crosses_languages(embedder):
    passages = embedder.embed_passages(
        [
            "The cache keeps keys and values, so each step computes only the newest token.",
            "Bake the dough for twelve minutes in a very hot oven.",
            "缓存保存键和值，因此每一步只需计算最新的词元。",
            "面团在高温烤箱中烤十二分钟。",
        ]
    )
    for question, best in (("烤披萨需要多长时间？", 1), ("What does the KV cache store?", 0)):
        scores = passages @ embedder.embed_query(question)
        assert np.argmax(scores[:2]) == np.argmax(scores[2:]) == best


@pytest.mark.parametrize("line", ["a word" * 170_000, "注意力机制" * 70_000, "x" * 1_000_000])
def test_a_line_of_a_megabyte_has_spans_in_seconds(embedder, line):
    started = time.process_time()
    spans = embedder.token_spans(line)
    assert time.process_time() - started < 20  # about 1 s of a free processor
    assert spans[0][0] == 0 and spans[-1][1] == len(line)
