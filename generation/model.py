"""One causal language model on one device, with its tokenizer. Thin first version."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from generation.chat_template import encode_chat
from generation.gguf import DTYPES, convert_gguf
from generation.hf_folder import load_folder
from generation.progress import Progress, silent
from generation.weights import CATALOGUE, WeightsError, ensure


@dataclass
class LanguageModel:
    name: str
    tokenizer: PreTrainedTokenizerFast
    hf_model: Any
    context_length: int
    end_ids: frozenset[int]
    device: torch.device
    precision: str
    notice: str | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _token_texts: dict[int, str] = field(default_factory=dict, repr=False)

    @property
    def vocab_size(self) -> int:
        """The width V of the logits."""
        return self.hf_model.config.get_text_config().vocab_size

    def encode_chat(self, messages) -> list[int]:
        with self._lock:
            return encode_chat(self.tokenizer, messages)

    def encode(self, text: str) -> list[int]:
        with self._lock:
            return self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)

    def decode(self, ids) -> str:
        with self._lock:
            return self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)

    def token_text(self, token_id: int) -> str:
        """One token by itself, as the decoding loop records it; kept, since loops ask again."""
        text = self._token_texts.get(token_id)
        if text is None:
            text = self._token_texts[token_id] = self.decode([token_id])
        return text


def load_model(
    source: str = "auto",
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | None = None,
) -> LanguageModel:
    progress = progress or silent
    notice = None
    torch_device = torch.device(
        ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    )
    if precision == "auto":
        fast = torch_device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()
        precision = "bf16" if fast else "fp32"
    name = source
    if source == "auto":
        try:
            name = "qwen-0.5b"
            path = ensure(name, progress)
        except WeightsError as error:
            name, notice = "smollm2", str(error)
            path = ensure(name, progress)
    else:
        path = ensure(name, progress) if name in CATALOGUE else Path(source)
    folder = convert_gguf(path, precision, progress) if path.suffix == ".gguf" else path
    model, tokenizer = load_folder(folder, DTYPES[precision], torch_device)
    end_ids = {tokenizer.eos_token_id}
    for eos in (model.generation_config.eos_token_id, model.config.eos_token_id):
        end_ids |= set(eos) if isinstance(eos, list) else {eos}
    return LanguageModel(
        name=name,
        tokenizer=tokenizer,
        hf_model=model,
        context_length=model.config.max_position_embeddings,
        end_ids=frozenset(id for id in end_ids if id is not None),
        device=torch_device,
        precision=precision,
        notice=notice,
    )
