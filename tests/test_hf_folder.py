"""Model folders are data: code, pickles and damage are refused before they are opened (T7)."""

import json
import pickle
import shutil

import pytest
import torch

from generation.errors import ModelError
from generation.hf_folder import check_folder, count_parameters, load_folder
from tests.tiny import tiny_lm

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    lm = tiny_lm("llama")
    lm.hf_model.save_pretrained(folder)
    lm.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_folder_of_data_loads_ready_to_run(folder):
    model, tokenizer = load_folder(folder, torch.bfloat16, CPU)
    assert model.dtype == torch.bfloat16 and not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert model.config._attn_implementation == "sdpa"
    assert tokenizer.decode(tokenizer.encode("hi")) == "hi"


@pytest.mark.parametrize("name", ["modeling_x.py", "deep/er/x.py", "kernel.so", "X.PY"])
def test_code_is_refused(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("raise SystemExit('it was run')")
    with pytest.raises(ModelError, match="contains code"):
        load_folder(folder, torch.float32, CPU)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "generation_config.json"])
def test_a_request_for_code_is_refused(folder, name):
    change(folder / name, nested={"deep": [{"auto_map": {"AutoModel": "owner/name--x.X"}}]})
    with pytest.raises(ModelError, match="asks for code of its own"):
        load_folder(folder, torch.float32, CPU)


class Exploit:
    def __reduce__(self):
        return (pytest.fail, ("the pickle was loaded",))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_a_pickle_alone_is_refused_unopened(folder, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Exploit()))
    with pytest.raises(
        ModelError, match=r"no \.safetensors file; its pickled weights can run code"
    ):
        load_folder(folder, torch.float32, CPU)


def test_a_pickle_beside_safetensors_is_ignored(folder):
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Exploit()))
    load_folder(folder, torch.float32, CPU)


def test_a_folder_of_gguf_says_to_give_the_file(tmp_path):
    (tmp_path / "model.gguf").touch()
    with pytest.raises(ModelError, match=r"give the \.gguf file itself"):
        check_folder(tmp_path)


def test_a_quantized_folder_is_refused(folder):
    change(folder / "config.json", quantization_config={"quant_method": "gptq"})
    with pytest.raises(ModelError, match="quantized in a format"):
        load_folder(folder, torch.float32, CPU)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_damaged_json_is_said_to_be_damaged(folder, name):
    (folder / name).write_text('{"half": ')
    with pytest.raises(ModelError, match=rf"{name} is damaged"):
        load_folder(folder, torch.float32, CPU)


@pytest.mark.parametrize("keep", [0, 7, 100, 0.9])
def test_truncated_weights_are_said_to_be_damaged(folder, keep):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(ModelError, match="is damaged"):
        load_folder(folder, torch.float32, CPU)


def test_missing_weights_are_not_filled_with_noise(folder):
    change(folder / "config.json", num_hidden_layers=3)
    with pytest.raises(ModelError, match=r"lacks \d+ of its model's weights"):
        load_folder(folder, torch.float32, CPU)


@pytest.mark.parametrize("changes", [{"model_type": "not-known"}, {"model_type": "vit"}, {}])
def test_what_is_no_known_language_model_is_one_clear_sentence(folder, changes):
    if changes:
        change(folder / "config.json", architectures=None, **changes)
    else:
        (folder / "config.json").unlink()
    with pytest.raises(ModelError) as caught:
        load_folder(folder, torch.float32, CPU)
    assert "\n" not in str(caught.value)


def test_too_little_memory_is_said_before_loading(folder, monkeypatch):
    monkeypatch.setattr("generation.memory.available_bytes", lambda _: 1000)
    monkeypatch.setattr(
        "generation.hf_folder.AutoTokenizer.from_pretrained",
        lambda *_, **__: pytest.fail("it was loaded"),
    )
    with pytest.raises(ModelError, match=r"GB of memory and cpu has 0\.0 GB free"):
        load_folder(folder, torch.float32, CPU)


def test_parameters_are_counted_from_the_headers(folder):
    assert count_parameters(folder) == sum(
        p.numel() for p in tiny_lm("llama").hf_model.parameters()
    )
