"""Where the embedder computes, and in which precision, when nobody says. Knows no model."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def choose_device(device: str) -> str:
    """A torch device by name; "auto" is the GPU if there is one."""
    import torch

    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def choose_precision(precision: str, device: "torch.device") -> str:
    """ "fp32" or "bf16". A CPU that has to emulate bf16 would be slower with it than without."""
    import torch

    if precision in ("fp32", "bf16"):
        return precision
    if precision != "auto":
        raise ValueError(f"precision must be auto, fp32 or bf16, not {precision!r}.")
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    return "bf16" if torch.cpu._is_avx512_bf16_supported() else "fp32"
