"""GGUF files become the same weights, tokenizer and stop ids, once, or are refused clearly."""

import json
import shutil
import struct

import gguf
import pytest
import torch
from safetensors.torch import load_file

from generation import gguf as conversion
from generation.errors import ModelError
from generation.gguf import convert_gguf, inspect_gguf
from generation.model import load_model
from generation.weights import CATALOGUE, ensure
from tests.tiny import tiny_tokenizer
from tests.tiny_gguf import CONTEXT, END, write_gguf


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSBOX_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "cache"


@pytest.fixture
def tiny(home, tmp_path):
    return write_gguf(tmp_path / "tiny.gguf")


def kept(home) -> list[str]:
    folder = home / "converted"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_is_converted_once_and_then_found(home, tiny, monkeypatch):
    told = []
    folder = convert_gguf(tiny, "fp32", lambda label, *_: told.append(label))
    assert any("Converting tiny.gguf to fp32" in label and str(folder) in label for label in told)
    assert (folder / "model.safetensors").is_file()
    monkeypatch.setattr(conversion, "_convert", lambda *_: pytest.fail("converted again"))
    assert convert_gguf(tiny, "fp32") == folder
    moved = tiny.rename(tiny.with_name("other.gguf"))
    assert convert_gguf(moved, "fp32") == folder, "a file is known by its hash, not its name"


def test_a_damaged_copy_is_made_again(tiny):
    folder = convert_gguf(tiny, "fp32")
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert convert_gguf(tiny, "fp32") == folder
    assert path.read_bytes() == whole


def test_what_lies_beside_the_file_is_not_read(home, tiny):
    (tiny.parent / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["x.X"]}}')
    (tiny.parent / "generation_config.json").write_text('{"eos_token_id": 7}')
    folder = convert_gguf(tiny, "fp32")
    assert "auto_map" not in (folder / "tokenizer_config.json").read_text()
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [END]


def test_every_id_that_ends_an_answer_is_kept(home, tmp_path):
    path = write_gguf(
        tmp_path / "ends.gguf",
        control=("<|end|>", "<|eot|>", "<|endoftext|>"),
        tokenizer__ggml__eot_token_id=END + 1,
    )
    lm = load_model(str(path), device="cpu", precision="fp32")
    assert lm.end_ids == {END, END + 1, END + 2}
    assert lm.hf_model.generation_config.eos_token_id == [END, END + 1, END + 2]
    assert lm.context_length == CONTEXT
    assert lm.name == "ends" and lm.weights_path == path


def test_interruption_leaves_nothing_half_made(home, tiny, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(conversion, "publish_folder", interrupted)
        convert_gguf(tiny, "fp32")
    assert kept(home) == []
    convert_gguf(tiny, "fp32")
    assert len(kept(home)) == 1


def test_what_a_killed_process_left_is_swept(home, tiny):
    place = convert_gguf(tiny, "fp32")
    shutil.rmtree(place)
    (place.parent / f".partial-{place.name}-abc").mkdir()
    convert_gguf(tiny, "fp32")
    assert kept(home) == [place.name]


def test_a_truncated_file_is_refused_wherever_it_was_cut(home, tiny):
    whole = tiny.read_bytes()
    for share in (0.0, 0.0005, 0.01, 0.1, 0.5, 0.99):
        tiny.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ModelError, match="not a whole GGUF file") as caught:
            convert_gguf(tiny, "fp32")
        assert "\n" not in str(caught.value)
    assert kept(home) == []


def test_a_corrupt_header_is_refused(home, tiny):
    whole = tiny.read_bytes()
    huge = struct.pack("<Q", 2**60)
    for damaged in (
        b"GGML" + whole[4:],
        whole[:4] + struct.pack("<I", 99) + whole[8:],
        whole[:8] + huge + whole[16:],  # tensors
        whole[:16] + huge + whole[24:],  # keys
        whole[:24] + huge + whole[32:],  # length of the first key
    ):
        tiny.write_bytes(damaged)
        with pytest.raises(ModelError, match="not a whole GGUF file"):
            convert_gguf(tiny, "fp32")


def test_an_unknown_architecture_is_named(home, tmp_path):
    path = write_gguf(tmp_path / "new.gguf", architecture="not-a-model")
    with pytest.raises(ModelError, match=r"cannot be converted: .*not-a-model"):
        convert_gguf(path, "fp32")
    assert kept(home) == []


def test_missing_tensors_are_not_filled_with_noise(home, tmp_path):
    path = write_gguf(tmp_path / "holes.gguf", without=["blk.1.attn_q"])
    with pytest.raises(ModelError, match="lacks 1 of its model's weights"):
        convert_gguf(path, "fp32")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"arrays": ["rope_freqs.weight"]}, "rotary positions"),
        ({"llama__rope__scaling__type": "yarn"}, "rotary positions"),
        ({"split__count": 3}, "one part of a model"),
    ],
)
def test_what_cannot_be_read_exactly_is_refused(home, tmp_path, fault, says):
    with pytest.raises(ModelError, match=says):
        convert_gguf(write_gguf(tmp_path / "x.gguf", **fault), "fp32")


def test_too_little_memory_or_disk_is_said_before_anything_is_made(home, tiny, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("generation.memory.available_bytes", lambda _: 1000)
        with pytest.raises(ModelError, match=r"Converting tiny\.gguf to fp32 takes about"):
            convert_gguf(tiny, "fp32")
    usage = shutil.disk_usage(tiny.parent)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ModelError, match="of disk"):
        convert_gguf(tiny, "fp32")
    assert kept(home) == []


def test_a_file_that_is_not_there_is_one_sentence(home, tmp_path):
    with pytest.raises(ModelError, match="No such file"):
        convert_gguf(tmp_path / "none.gguf", "fp32")


def test_only_the_known_vocabularies_get_digits_split_first():
    backend = tiny_tokenizer().backend_tokenizer
    before = str(backend.pre_tokenizer)
    conversion.restore_pre_tokenizer(backend, "qwen2")
    assert str(backend.pre_tokenizer) == before
    conversion.restore_pre_tokenizer(backend, "smollm")
    pieces = backend.pre_tokenizer.pre_tokenize_str("a12 34")
    assert [span for _, span in pieces] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]


# With the real file.


def test_smollm2_splits_every_digit_of_every_script(smollm2):
    for text in ("१२३", "١٢٣", "１２３", "ⅣⅧ", "½²", "x１y2", "2024"):
        alone = [i for c in text for i in smollm2.encode(c)]
        assert smollm2.encode(text) == alone, text
        assert smollm2.decode(alone) == text


def test_fp32_is_the_files_own_arithmetic(smollm2):
    reader = gguf.GGUFReader(smollm2.weights_path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    state = smollm2.hf_model.state_dict()
    for theirs, ours in (
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"),
        ("blk.29.attn_v.weight", "model.layers.29.self_attn.v_proj.weight"),
        ("output_norm.weight", "model.norm.weight"),
    ):
        exact = gguf.dequantize(tensors[theirs].data, tensors[theirs].tensor_type)
        assert torch.equal(state[ours], torch.tensor(exact)), theirs
    # Queries and keys are stored with each head's rotary pairs interleaved.
    heads, size = 9, 64
    stored = tensors["blk.3.attn_q.weight"]
    exact = torch.tensor(gguf.dequantize(stored.data, stored.tensor_type))
    rotated = exact.view(heads, size // 2, 2, -1).transpose(1, 2).reshape(exact.shape)
    assert torch.equal(state["model.layers.3.self_attn.q_proj.weight"], rotated)


def test_bf16_is_fp32_rounded_once():
    path = ensure("smollm2")
    exact = load_file(convert_gguf(path, "fp32") / "model.safetensors")
    rounded = load_file(convert_gguf(path, "bf16") / "model.safetensors")
    assert exact.keys() == rounded.keys()
    for name, weights in exact.items():
        assert weights.dtype == torch.float32
        assert torch.equal(rounded[name], weights.to(torch.bfloat16)), name


def test_the_header_of_smollm2(smollm2):
    header = inspect_gguf(smollm2.weights_path)
    assert header.architecture == "llama"
    assert header.metadata["tokenizer.ggml.pre"] == "smollm"
    assert conversion.end_ids(header) == [2]
    assert CATALOGUE["smollm2"].chat_template_sha256 == smollm2.chat_template_sha256
