"""The E5S1 reader: what it reads, and that damage is one clear sentence, never a crash."""

import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.e5_format import E5Error, dequantize_q4_0, read_e5
from tests.tiny_e5 import HIDDEN, PIECES, REPLACEMENTS, VOCABULARY, tiny_e5_bytes, write_tiny_e5

GOOD = tiny_e5_bytes()


@pytest.fixture
def read(tmp_path):
    def read(data: bytes):
        path = tmp_path / "weights.bin"
        path.write_bytes(data)
        return read_e5(path)

    return read


def test_a_block_is_unpacked_low_nibbles_first():
    codes = np.arange(32) % 16
    nibbles = (codes[:16] | codes[16:] << 4).astype(np.uint8)
    raw = np.frombuffer(np.float16(0.5).tobytes() + nibbles.tobytes(), np.uint8)
    np.testing.assert_array_equal(dequantize_q4_0(raw), (codes - 8) * 0.5)


def test_a_whole_file_is_read(tmp_path):
    weights = read_e5(write_tiny_e5(tmp_path / "tiny.bin"))
    assert weights.pieces == [(piece, float(np.float32(score))) for piece, score in PIECES]
    assert weights.replacements == REPLACEMENTS
    assert (weights.bos_id, weights.pad_id, weights.eos_id, weights.unk_id) == (0, 1, 2, 3)
    table = weights.tensor("emb.word", (VOCABULARY, HIDDEN))
    assert table.dtype == np.float32 and np.abs(table).max() <= 8 * 0.0201


def test_a_tensor_of_another_size_or_name_is_an_error(tmp_path):
    weights = read_e5(write_tiny_e5(tmp_path / "tiny.bin"))
    with pytest.raises(E5Error, match=r"emb\.pos"):
        weights.tensor("emb.pos", (7, 7))
    with pytest.raises(E5Error, match=r"l9\.q\.w"):
        weights.tensor("l9.q.w", (HIDDEN, HIDDEN))


def test_a_weight_that_is_no_number_is_an_error(read):
    last = struct.pack("<f", float("nan"))
    weights = read(GOOD[:-4] + last)
    with pytest.raises(E5Error, match="finite"):
        weights.tensor("l1.oln.b", (HIDDEN,))


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(E5Error, match=r"nowhere\.bin cannot be read"):
        read_e5(tmp_path / "nowhere.bin")


@pytest.mark.parametrize("size", [0, 3, 4, 8, 43, 60, 200, 1000, len(GOOD) - 1])
def test_a_truncated_file_is_an_error(read, size):
    with pytest.raises(E5Error, match=r"weights\.bin is not a usable E5S1 file"):
        read(GOOD[:size])


@pytest.mark.parametrize(
    "field, value",
    [
        ("magic", b"GGUF"),
        ("version", struct.pack("<I", 2)),
        ("hidden", struct.pack("<i", -32)),
        ("heads", struct.pack("<i", 0)),
        ("block", struct.pack("<i", 64)),
        ("pieces", struct.pack("<i", 2**31 - 1)),
        ("text length", struct.pack("<Q", 2**64 - 1)),
    ],
)
def test_a_false_header_is_an_error(read, field, value):
    places = {"magic": 0, "version": 4, "hidden": 8, "heads": 16, "block": 40, "pieces": 44}
    place = places.get(field, 64)
    with pytest.raises(E5Error):
        read(GOOD[:place] + value + GOOD[place + len(value) :])


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_read_or_refused_but_never_crash(read, flips):
    data = bytearray(GOOD)
    for place, value in flips:
        data[place] = value
    try:
        weights = read(bytes(data))
        weights.tensor("emb.word", (weights.vocabulary, weights.hidden))
    except E5Error as error:
        assert str(error).endswith(".")
