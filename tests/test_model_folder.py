"""Embedding models from folders are data: what could run code is refused, unopened (T7)."""

import json
import os
import pickle
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from rag.e5 import convert
from rag.model_folder import ModelFolderError, check_folder, fingerprint, open_folder
from tests.tiny_e5 import write_tiny_e5


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    base = tmp_path_factory.mktemp("saved")
    return convert(write_tiny_e5(base / "tiny.bin"), base)


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def open_it(folder):
    return open_folder(folder, "cpu", torch.float32)


def change(file, **values):
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_a_folder_of_data_opens_ready_to_use(folder):
    model = open_it(folder)
    assert not model.training and not any(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("name", ["modeling.py", "deep/er/x.py", "kernel.so", "X.PY", "x.pyc"])
def test_code_is_refused(folder, name):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("raise SystemExit('it was run')")
    with pytest.raises(ModelFolderError, match="contains code"):
        open_it(folder)


@pytest.mark.parametrize(
    "name",
    ["config.json", "tokenizer_config.json", "sentence_bert_config.json", "1_Pooling/config.json"],
)
def test_a_request_for_code_is_refused(folder, name):
    change(folder / name, deep=[{"er": {"auto_map": {"AutoModel": "owner/name--x.X"}}}])
    with pytest.raises(ModelFolderError, match="auto_map"):
        open_it(folder)


def test_a_request_for_code_written_with_escapes_is_refused(folder):
    file = folder / "config.json"
    change(file, auto_map={})
    file.write_text(file.read_text().replace("auto_map", "auto\\u005fmap"))
    with pytest.raises(ModelFolderError, match="auto_map"):
        open_it(folder)


@pytest.mark.parametrize(
    "kind",
    [
        "os.system",
        "x.Transformer",
        "sentence_transformers_x.Pooling",
        "sentence_transformers.x.Evil",
    ],
)
def test_a_module_of_another_kind_is_refused(folder, kind):
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = kind
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelFolderError, match="not known"):
        open_it(folder)


@pytest.mark.parametrize("path", ["..", "/", "1_Pooling/../../other"])
def test_a_module_outside_the_folder_is_refused(folder, path):
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["path"] = path
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelFolderError, match="outside"):
        open_it(folder)


class Exploit:
    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "1_Pooling/x.pt", "a.pkl", "x.npy"])
def test_pickles_are_refused(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Exploit()))
    with pytest.raises(ModelFolderError, match="use safetensors"):
        open_it(folder)
    assert not (folder / "ran").exists()


def test_an_adapter_is_refused(folder):
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "elsewhere"}')
    with pytest.raises(ModelFolderError, match="adapter"):
        open_it(folder)


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, '{"a": 1}', "[1]", "\0"])
def test_a_damaged_list_of_modules_is_one_sentence(folder, content):
    (folder / "modules.json").write_text(content)
    with pytest.raises(ModelFolderError, match=r"modules\.json"):
        check_folder(folder)


def test_truncated_weights_are_one_sentence(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ModelFolderError, match="cannot be loaded"):
        open_it(folder)


def test_missing_weights_are_not_made_up(folder):
    file = folder / "model.safetensors"
    tensors = load_file(file)
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(ModelFolderError, match=r"lacks weights .*layer\.1\.output\.dense"):
        open_it(folder)


def test_the_fingerprint_follows_what_changes_vectors(folder):
    before = fingerprint(folder)
    (folder / "README.md").write_text("new")
    assert fingerprint(folder) == before
    change(folder / "1_Pooling/config.json", pooling_mode="cls")
    assert fingerprint(folder) != before
