"""The header of a GGUF file agrees with the reference reader, and damage in it is noticed."""

import gguf
import numpy as np
import pytest

from generation.gguf_header import read_header, write_without_vocabulary
from tests.tiny_gguf import write_gguf


@pytest.fixture
def tiny(tmp_path):
    return write_gguf(tmp_path / "tiny.gguf", general__name="Tiny ☃", general__alignment=64)


def test_it_agrees_with_the_reference_reader(tiny):
    header, reference = read_header(tiny), gguf.GGUFReader(tiny)
    assert [t.name for t in header.tensors] == [t.name for t in reference.tensors]
    for ours, theirs in zip(header.tensors, reference.tensors, strict=True):
        assert ours.shape == tuple(theirs.shape) and ours.kind == theirs.tensor_type
        assert (ours.start, ours.size) == (theirs.data_offset, theirs.n_bytes)
        assert ours.count == theirs.n_elements
    for key, value in header.metadata.items():
        theirs = reference.fields[key].contents()
        assert value == (len(theirs) if isinstance(theirs, list) else theirs), key


def test_the_copy_without_vocabulary_has_the_same_tensors_and_knows_its_size(tiny, tmp_path):
    light = tmp_path / "light.gguf"
    write_without_vocabulary(read_header(tiny), light)
    whole, reference = gguf.GGUFReader(tiny), gguf.GGUFReader(light)
    kept = {key for key in reference.fields if key.startswith("tokenizer.ggml")}
    assert kept == {"tokenizer.ggml.model", "tokenizer.ggml.eos_token_id"}
    assert reference.fields["llama.vocab_size"].contents() == 258
    assert reference.fields["general.name"].contents() == "Tiny ☃"
    for ours, theirs in zip(reference.tensors, whole.tensors, strict=True):
        assert ours.name == theirs.name and np.array_equal(ours.data, theirs.data)


def test_the_size_of_the_vocabulary_is_written_where_only_its_tokens_told(tmp_path):
    tiny = write_gguf(tmp_path / "tiny.gguf", architecture="qwen2", vocab_size=False)
    assert "qwen2.vocab_size" not in read_header(tiny).metadata
    write_without_vocabulary(read_header(tiny), tmp_path / "light.gguf")
    assert read_header(tmp_path / "light.gguf").metadata["qwen2.vocab_size"] == 258


def test_any_cut_of_the_file_is_noticed(tiny):
    whole = tiny.read_bytes()
    header = read_header(tiny)
    end = max(tensor.start + tensor.size for tensor in header.tensors)
    for length in (1, 3, 4, 23, 24, 100, header.table_span[0], header.data_start, end - 1):
        tiny.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"ends|begin"):
            read_header(tiny)
    tiny.write_bytes(b"")
    with pytest.raises(ValueError):
        read_header(tiny)


def test_random_damage_gives_a_header_or_a_value_error(tiny):
    whole = tiny.read_bytes()
    length = read_header(tiny).data_start
    rng = np.random.default_rng(0)
    for _ in range(500):
        damaged = bytearray(whole)
        for place in rng.integers(0, length, 3):
            damaged[place] = rng.integers(0, 256)
        tiny.write_bytes(damaged)
        try:
            read_header(tiny)
        except ValueError:
            continue
