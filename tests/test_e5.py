"""The conversion of E5S1 files, and the real weights held to the engine they were written for."""

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rag.e5 import PROMPTS, E5Error, convert, load_e5
from rag.e5_format import read_e5
from tests.tiny_e5 import HIDDEN, PIECES, tiny_e5_bytes, write_tiny_e5

ROOT = Path(__file__).parents[1]
REFERENCE = json.loads((ROOT / "tests/data/e5_reference.json").read_text("utf-8"))


@pytest.fixture
def tiny(tmp_path):
    return write_tiny_e5(tmp_path / "tiny.bin")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def pieces_of(model, text):
    ids = model.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids
    return [PIECES[i][0] for i in ids]


def test_the_folder_is_an_ordinary_sentence_transformer(tiny, cache):
    model = load_e5(tiny, cache)
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", "Normalize"]
    assert model.get_embedding_dimension() == HIDDEN
    assert model.prompts == PROMPTS
    vectors = model.encode(["ab", "cab age"], prompt_name="passage")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_every_weight_arrives_unchanged(tiny, cache):
    weights, bert = read_e5(tiny), load_e5(tiny, cache)[0].auto_model.state_dict()
    query = weights.tensor("l1.q.w", (HIDDEN, HIDDEN))
    np.testing.assert_array_equal(bert["encoder.layer.1.attention.self.query.weight"], query)
    parameters = sum(tensor.elements for tensor in weights.directory.values())
    assert sum(tensor.numel() for tensor in bert.values()) == parameters


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("ab cab", ["▁ab", "▁cab"]),
        ("  ab \n\u3000 cab ", ["▁ab", "▁cab", "▁"]),  # white space runs, and what counts as such
        ("a\x01b", ["▁ab"]),  # removed
        ("ａb", ["▁ab"]),  # NFKC
        ("㈱", ["▁", "(", "株", ")"]),
        ("～", ["▁", "～"]),  # which NFKC alone would write as "~"
        ("e\u0301", ["▁é"]),  # composed, as in training
        ("你好", ["▁", "你", "好"]),
        ("zz", ["▁", "<unk>"]),
    ],
)
def test_text_becomes_pieces(tiny, cache, text, pieces):
    assert pieces_of(load_e5(tiny, cache), text) == pieces


def test_the_second_load_reads_the_folder_that_the_first_one_wrote(tiny, cache):
    folder = convert(tiny, cache)
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    load_e5(tiny, cache)
    assert [path.name for path in cache.iterdir()] == [folder.name]
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_other_weights_get_another_folder(tmp_path, cache):
    first = convert(write_tiny_e5(tmp_path / "a.bin", seed=1), cache)
    second = convert(write_tiny_e5(tmp_path / "b.bin", seed=2), cache)
    assert first != second


def test_a_broken_folder_is_written_anew(tiny, cache):
    file = convert(tiny, cache) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    assert load_e5(tiny, cache).encode("ab").shape == (HIDDEN,)


def test_two_processes_may_convert_at_once(tiny, cache):
    code = (
        "import sys; from pathlib import Path; from rag.e5 import convert;"
        "print(convert(Path(sys.argv[1]), Path(sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, str(tiny), str(cache)]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    folders = {process.communicate()[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert folders == {str(path) for path in cache.iterdir()}  # one, and nothing left beside it


def test_what_a_killed_conversion_left_is_removed(tiny, cache):
    old, fresh = cache / ".e5-old", cache / ".e5-fresh"
    for folder in (old, fresh):
        folder.mkdir(parents=True)
    yesterday = time.time() - 24 * 3600
    os.utime(old, (yesterday, yesterday))
    convert(tiny, cache)
    assert not old.exists() and fresh.exists()  # another process may be writing the fresh one


@pytest.mark.parametrize("damage", [lambda data: data[:5000], lambda data: b"GGUF" + data[4:]])
def test_a_damaged_file_leaves_nothing_behind(tmp_path, cache, damage):
    path = tmp_path / "damaged.bin"
    path.write_bytes(damage(tiny_e5_bytes()))
    with pytest.raises(E5Error, match=r"damaged\.bin"):
        load_e5(path, cache)
    assert not cache.exists() or not list(cache.iterdir())


def test_a_full_disk_is_said_beforehand(tiny, cache, monkeypatch):
    monkeypatch.setattr("rag.e5.SPARE_BYTES", 1 << 60)
    with pytest.raises(E5Error, match="GB free"):
        load_e5(tiny, cache)
    assert not list(cache.iterdir())


def test_a_cache_that_cannot_be_written_is_an_error(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(E5Error, match=r"tiny\.bin cannot be unpacked"):
        load_e5(tiny, tmp_path / "file" / "cache")


# The real weights.


@pytest.mark.parametrize("case", REFERENCE["tokens"], ids=lambda case: ascii(case["text"][:20]))
def test_token_ids_are_those_of_the_engine(embedder, case):
    encoding = embedder._tokenizer.encode("passage: " + case["text"], add_special_tokens=False)
    assert encoding.ids == case["ids"]


@pytest.mark.parametrize(
    "case", REFERENCE["vectors"], ids=lambda case: case["kind"] + " " + ascii(case["text"][:20])
)
def test_vectors_are_those_of_the_engine(embedder, case):
    expected = np.frombuffer(base64.b64decode(case["vector"]), "<f2").astype(np.float32)
    if case["kind"] == "query":
        vector = embedder.embed_query(case["text"])
    else:
        [vector] = embedder.embed_passages([case["text"]])
    assert vector @ expected / np.linalg.norm(expected) >= 0.9997


def test_the_replacements_of_the_file_are_applied_to_every_character(e5_file, embedder):
    """All 4,837, one by one: with the whole sentence around them, in case a rule is greedy."""
    normalize = embedder._tokenizer.normalizer.normalize_str
    table = read_e5(e5_file).replacements
    assert len(table) == 4837
    wrong = {
        character: (text, normalize(f"x{character}."))
        for character, text in table.items()
        if normalize(f"x{character}.") != normalize_spaces(f"x{text}.")
    }
    # A mark that composes with the x before it, as it did in training and not in the engine.
    assert set(wrong) <= {"\u0344"}


def normalize_spaces(text: str) -> str:
    while "  " in text:
        text = text.replace("  ", " ")
    return text
