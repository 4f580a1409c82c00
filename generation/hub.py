"""A model of the hub, by its id, to a folder on this machine. Knows nothing of what is in it.

Only data is asked for: JSON, text and safetensors. The small files come first and are checked, so
that a model that wants its code run is refused before its weights are fetched.
"""

import re
from pathlib import Path

from huggingface_hub import snapshot_download

from generation.errors import ModelError
from generation.hf_folder import check_configurations, first_line
from generation.progress import Progress

SMALL_FILES = ["*.json", "*.txt", "*.jinja", "tokenizer.model"]
WEIGHTS = ["*.safetensors"]
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")


def is_hub_id(source: str) -> bool:
    """Whether `source` has the form owner/name or owner/name@revision."""
    return _HUB_ID.fullmatch(source) is not None and not source.endswith(".gguf")


def fetch_from_hub(source: str, progress: Progress) -> Path:
    """The folder of a model, in the hub library's own cache; `HF_HUB_OFFLINE` is respected."""
    repository, _, revision = source.partition("@")
    label = f"Fetching {source} from the model hub"
    try:
        progress(label, 0, 0)
        folder = _download(repository, revision, SMALL_FILES)
        check_configurations(folder)
        folder = _download(repository, revision, WEIGHTS)
    except ModelError:
        raise
    except Exception as error:  # the hub library's, the network's and the disk's
        raise ModelError(
            f"{source} could not be fetched from the model hub ({first_line(error)}): check the "
            "name and the connection, or give a folder or a .gguf file on this machine."
        ) from error
    progress(label, 1, 1)
    return folder


def _download(repository: str, revision: str, patterns: list[str]) -> Path:
    return Path(
        snapshot_download(
            repository, revision=revision or None, allow_patterns=patterns, etag_timeout=4
        )
    )
