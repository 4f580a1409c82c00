"""Opens a SentenceTransformer folder, after making sure that it is data and not code.

Knows what such a folder may contain. It does not know where folders come from or what is embedded.

A model folder can carry Python: `auto_map` in a config, module types in `modules.json`, pickled
weights. sentence-transformers has run such code from local folders in spite of
`trust_remote_code=False`, so this module refuses the folder before the library sees it.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

CODE = frozenset({".py", ".pyc", ".pyd", ".so", ".dll", ".dylib"})
PICKLES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz"})
MODULES = frozenset({"Transformer", "Pooling", "Normalize", "Dense"})
FORBIDDEN_KEYS = frozenset({"auto_map", "custom_pipelines"})
VOCABULARIES = frozenset({"tokenizer.json", "vocab.json"})  # large, and never read as settings
IGNORED_SUFFIXES = frozenset({".md", ""})  # a README or a .gitattributes changes no vector


class ModelFolderError(RuntimeError):
    """The folder is refused or damaged. The message says why in one sentence, for the person."""


def open_folder(folder: Path, device: str, dtype: "torch.dtype") -> "SentenceTransformer":
    """The checked folder as a SentenceTransformer in evaluation mode; nothing is downloaded."""
    check_folder(folder)
    # Imported here: it takes 0.9 s beyond transformers (scikit-learn, the trainers), and the page
    # can be up before the first embedding is needed.
    from sentence_transformers import SentenceTransformer

    try:
        with quiet():
            model = SentenceTransformer(
                str(folder),
                device=device,
                local_files_only=True,
                trust_remote_code=False,
                # Said here, as a config file could otherwise name a kernel to fetch, or a pickle.
                model_kwargs={
                    "dtype": dtype,
                    "attn_implementation": "sdpa",
                    "use_safetensors": True,
                },
            )
    except Exception as error:  # of several libraries, about anything that can be wrong in a file
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelFolderError(f"{folder.name} cannot be loaded: {reason}") from error
    require_weights(model[0].auto_model, folder)  # type: ignore[arg-type]
    return model.eval().requires_grad_(False)


def check_folder(folder: Path) -> None:
    """Raise ModelFolderError unless `folder` is a SentenceTransformer made of plain data."""
    if not (folder / "modules.json").is_file():
        raise ModelFolderError(f"{folder.name} is not a SentenceTransformer folder (modules.json).")
    check_data(folder)


def check_data(folder: Path) -> None:
    """Raise ModelFolderError when a file of `folder` is code, or asks to run some."""
    for file in _files(folder):
        name = file.relative_to(folder).as_posix()
        if file.suffix.lower() in CODE:
            raise ModelFolderError(f"{folder.name} contains code ({name}); only data is loaded.")
        if file.suffix.lower() in PICKLES:
            raise ModelFolderError(
                f"{folder.name} contains weights that can run code ({name}); use safetensors."
            )
        if file.name == "adapter_config.json":
            raise ModelFolderError(f"{folder.name} is an adapter, which points at another model.")
        if file.suffix == ".json" and file.name not in VOCABULARIES:
            found = FORBIDDEN_KEYS.intersection(_keys(_read_json(file)))
            if found:
                raise ModelFolderError(f"{folder.name} asks to run code ({name}: {min(found)}).")
    if (folder / "modules.json").is_file():
        _check_modules(folder)


def _check_modules(folder: Path) -> None:
    modules = _read_json(folder / "modules.json")
    if not (isinstance(modules, list) and all(isinstance(module, dict) for module in modules)):
        raise ModelFolderError(f"{folder.name}/modules.json is not a list of modules.")
    for module in modules:
        kind, path = str(module.get("type")), str(module.get("path"))
        package, _, name = kind.rpartition(".")
        if package.split(".")[0] != "sentence_transformers" or name not in MODULES:
            raise ModelFolderError(f"{folder.name} needs a module that is not known: {kind}.")
        if not (folder / path).resolve().is_relative_to(folder.resolve()):
            raise ModelFolderError(f"{folder.name} has a module outside its folder: {path}.")


def fingerprint(path: Path) -> str:
    """SHA-256 of a file; of a folder, over the names and contents of what can change a vector."""
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    digest = hashlib.sha256()
    for file in _files(path):
        if file.suffix not in IGNORED_SUFFIXES:
            name = file.relative_to(path).as_posix()
            digest.update(f"{name}\0{fingerprint(file)}\n".encode())
    return digest.hexdigest()


def require_weights(model: "torch.nn.Module", folder: Path) -> None:
    """Refuse a folder that lacks weights: the library would fill them with noise and go on."""
    from safetensors import safe_open

    stored = set()
    for file in folder.rglob("*.safetensors"):
        with safe_open(file, framework="pt") as tensors:
            stored.update(tensors.keys())
    stored |= {name.partition(".")[2] for name in stored}  # saved below a prefix, such as "bert."
    wanted = model.state_dict()
    missing = [name for name in wanted if name not in stored and not name.startswith("pooler.")]
    if missing:
        raise ModelFolderError(f"{folder.name} lacks weights of its model, such as {missing[0]}.")


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' progress bar, which would run through the one that is shown."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{file.parent.name}/{file.name} is damaged: {error}.") from None


def _keys(value: Any) -> Iterator[str]:
    """Every key of every object inside a JSON value."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _keys(item)
