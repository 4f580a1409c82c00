"""Weights -> model -> tokens, one at a time; scoring; comparison. No pages, no documents.

    from generation import load_model, GenerationConfig, generate, score

Names are imported when they are first used: reading the list of model files, or fetching one, must
not wait for torch and transformers.
"""

from importlib import import_module

_HOME = {
    "FinishReason": "step",
    "GenerationConfig": "config",
    "LanguageModel": "model",
    "Step": "step",
    "TokenScore": "scoring",
    "compare": "comparison",
    "generate": "decoding",
    "load_model": "model",
    "perplexity": "scoring",
    "score": "scoring",
    "stream_text": "streaming",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
