"""A model of the hub, by its id, to a folder on this machine. Knows nothing of what is in it.

Only data is asked for: JSON, text and safetensors. The small files come first and are checked, so
that a model that wants its code run is refused before its weights are fetched. Where the hub cannot
be reached, or `HF_HUB_OFFLINE` is set, what the hub library has in its own cache is used.
"""

import re
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import HfHubHTTPError

from generation.errors import ModelError
from generation.hf_folder import check_configurations, first_line
from generation.progress import Progress

SMALL_FILES = ["*.json", "*.txt", "*.jinja", "tokenizer.model"]
WEIGHTS = ["*.safetensors"]
SECONDS_TO_ANSWER = 4.0
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")


def is_hub_id(source: str) -> bool:
    """Whether `source` has the form owner/name or owner/name@revision."""
    return _HUB_ID.fullmatch(source) is not None and not source.endswith(".gguf")


def fetch_from_hub(source: str, progress: Progress) -> Path:
    """The folder of a model, in the hub library's cache. Raises ModelError."""
    repository, _, wanted = source.partition("@")
    label = f"Fetching {source} from the model hub"
    progress(label, 0, 0)
    try:
        revision, unreachable = _find(repository, wanted or None)
        try:
            folder = _download(repository, revision, SMALL_FILES, local=unreachable is not None)
            check_configurations(folder)
            folder = _download(repository, revision, WEIGHTS, local=unreachable is not None)
        except OSError as error:
            raise unreachable or error from error
    except ModelError:
        raise
    except Exception as error:  # the hub library's, the network's and the disk's
        raise ModelError(
            f"{source} could not be fetched from the model hub ({first_line(error)}): check the "
            "name and the connection, or give a folder or a .gguf file on this machine."
        ) from error
    progress(label, 1, 1)
    return folder


def _find(repository: str, revision: str | None) -> tuple[str | None, Exception | None]:
    """The exact revision meant, or why the hub could not be asked for it.

    Asked by itself, since the library's download waits for an answer without end.
    """
    try:
        found = HfApi().model_info(repository, revision=revision, timeout=SECONDS_TO_ANSWER)
        return found.sha, None
    except HfHubHTTPError:
        raise  # it answered: there is no such model, or not for us
    except Exception as error:
        return revision, error


def _download(repository: str, revision: str | None, patterns: list[str], local: bool) -> Path:
    return Path(
        snapshot_download(
            repository, revision=revision, allow_patterns=patterns, local_files_only=local
        )
    )
