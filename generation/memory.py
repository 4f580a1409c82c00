"""How much memory there is, asked before it is used. Knows nothing of models."""

from pathlib import Path

import psutil
import torch

from generation.errors import ModelError

CONTROL_GROUP = Path("/sys/fs/cgroup")  # where a container's limit is written


def available_bytes(device: torch.device) -> int:
    """What can still be allocated on `device`, a container's limit included."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min([psutil.virtual_memory().available, *_control_group_room()])


def require_memory(needed: int, device: torch.device, purpose: str) -> None:
    """Raise ModelError, before anything is loaded, when `needed` bytes are not there."""
    available = available_bytes(device)
    if needed > available:
        raise ModelError(
            f"{purpose} takes about {needed / 1e9:.1f} GB of memory and {device} has "
            f"{available / 1e9:.1f} GB free: close other programs or choose a smaller model."
        )


def _control_group_room() -> list[int]:
    try:
        limit = int((CONTROL_GROUP / "memory.max").read_text())  # "max" when there is none
        used = int((CONTROL_GROUP / "memory.current").read_text())
        statistics = (CONTROL_GROUP / "memory.stat").read_text().split()
        pairs = dict(zip(statistics[::2], statistics[1::2], strict=True))
        # Pages of files that can be dropped count as used there.
        return [limit - used + int(pairs.get("inactive_file", 0))]
    except (OSError, ValueError):
        return []
