"""One causal language model on one device: weights, tokenizer, context length, end-of-text ids.

Knows where a model may come from and what makes one usable; does not know how it is decoded.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from llguidance import LLTokenizer
from transformers import PreTrainedTokenizerFast

from generation import constraints
from generation.catalogue import CATALOGUE, WeightFile
from generation.chat_template import Message, encode_chat
from generation.errors import ModelError, WeightsError
from generation.gguf import DTYPES, convert_gguf
from generation.hf_folder import load_folder
from generation.hub import fetch_from_hub, is_hub_id
from generation.lean import LeanDecoder, lean_decoder
from generation.progress import Progress, silent
from generation.tokenization import TextEncoder
from generation.weights import ensure

PRECISIONS = ("auto", *DTYPES)
AUTO_MODELS = ("qwen-0.5b", "smollm2")  # the better one first
DEFAULT_CONTEXT = 2048  # for a model that does not say, which is rare
# Control tokens that close an answer, whatever a model's files call its end (llama.cpp's list of
# end-of-generation tokens): some files name only one of two that the model was taught.
END_TOKENS = frozenset(
    {
        *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>"),
        *("<end_of_turn>", "<turn|>", "<|return|>", "</s>", "<eos>", "<|endofturn|>", "<EOT>"),
    }
)


@dataclass
class LanguageModel:
    """A model ready to be run. `hf_model` is the transformers module, in eval mode."""

    name: str
    tokenizer: PreTrainedTokenizerFast
    hf_model: Any
    context_length: int
    end_ids: frozenset[int]
    device: torch.device
    precision: str
    notice: str | None = None  # for the person, such as that another model was loaded instead
    weights_path: Path | None = None  # the .gguf file or the folder it was read from
    lean: LeanDecoder | None = None  # compiled code for passes over a few tokens, where it serves
    kernel: str = "torch"  # what decodes, or why it is not the compiled code; for the person

    @property
    def vocab_size(self) -> int:
        """The width V of the logits, which may be more than the tokenizer has tokens."""
        return self.hf_model.config.get_text_config().vocab_size

    @cached_property
    def chat_template_sha256(self) -> str | None:
        return chat_template_sha256(self.tokenizer)

    @cached_property
    def text_encoder(self) -> TextEncoder:
        """Copies of the tokenizer for our own use, which any number of threads can share."""
        return TextEncoder(self.tokenizer)

    @cached_property
    def grammar_tokenizer(self) -> LLTokenizer:
        """The vocabulary as constraints need it, made when the first one is asked for."""
        return constraints.grammar_tokenizer(self)

    def encode_chat(
        self, messages: Sequence[Message], add_generation_prompt: bool = True
    ) -> list[int]:
        """Ids of a prompt in the model's chat format; untrusted text yields no control token."""
        return encode_chat(self.tokenizer, messages, add_generation_prompt, self.text_encoder)

    def encode(self, text: str) -> list[int]:
        """Ids of `text` as a continuation: no control tokens, and none put before it."""
        return self.text_encoder.encode_untrusted(text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`, control tokens as they are written, spaces as they are."""
        return self.text_encoder.decode(ids)


def load_model(
    source: str | Path = "auto",
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | None = None,
) -> LanguageModel:
    """Load a causal language model, fetching and converting it the first time.

    source: "auto" (qwen-0.5b, or smollm2 with a notice where that cannot be had), a name of the
    catalogue, a .gguf file, a folder with safetensors, or a hub id ("owner/name", with "@revision"
    if wanted). device: "auto" (a CUDA GPU if there is one, else the CPU), "cpu", "cuda", "cuda:1",
    "mps". precision: "auto" (bf16 where the device computes with it, else fp32), "fp32", "bf16".

    Raises ModelError or WeightsError, whose messages are for the person; ValueError for a device or
    precision that does not exist.
    """
    progress = progress or silent
    torch_device = choose_device(device)
    precision = choose_precision(precision, torch_device)
    if source != "auto":
        return _load(str(source), torch_device, precision, progress)
    better, smaller = AUTO_MODELS
    try:
        return _load(better, torch_device, precision, progress)
    except (WeightsError, ModelError) as error:
        model = _load(smaller, torch_device, precision, progress)
        return replace(
            model, notice=f"{smaller} was loaded, because {better} could not be: {error}"
        )


def choose_device(device: str) -> torch.device:
    """The torch device for a name; ValueError for an unknown one, ModelError for a missing one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    match = re.fullmatch(r"(cpu|mps|cuda)(?::(\d+))?", device)
    if not match:
        raise ValueError(f"device is one of auto, cpu, cuda, cuda:N, mps, not {device!r}.")
    kind, index = match[1], int(match[2] or 0)
    there = {"cpu": 1, "mps": int(torch.backends.mps.is_available())}
    if index >= there.get(kind, torch.cuda.device_count()):
        raise ModelError(f"This machine has no device {device}: choose auto or cpu.")
    return torch.device(device)


def choose_precision(precision: str, device: torch.device) -> str:
    """ "fp32" or "bf16"; "auto" is bf16 where the device has instructions for it."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}.")
    if precision != "auto":
        return precision
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities = torch.cpu.get_capabilities() if device.type == "cpu" else {}
        fast = any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16"))
    return "bf16" if fast else "fp32"


def chat_template_sha256(tokenizer: PreTrainedTokenizerFast) -> str | None:
    """The hash of the chat template's text, or None where the model has none."""
    if not tokenizer.chat_template:
        return None
    return hashlib.sha256(tokenizer.get_chat_template().encode()).hexdigest()


def end_ids(tokenizer: PreTrainedTokenizerFast, hf_model: Any) -> frozenset[int]:
    """Every id that ends an answer, by tokenizer, generation config or name."""
    generation = hf_model.generation_config.eos_token_id
    said = [tokenizer.eos_token_id, *(generation if isinstance(generation, list) else [generation])]
    named = [
        token_id
        for token_id, token in tokenizer.added_tokens_decoder.items()
        if token.special and token.content in END_TOKENS
    ]
    return frozenset(token_id for token_id in (*said, *named) if token_id is not None)


def context_length(tokenizer: PreTrainedTokenizerFast, hf_model: Any) -> int:
    """Positions in all, prompt and answer: what the model has, less if the tokenizer says so."""
    config = hf_model.config.get_text_config()
    limits = [
        getattr(config, name, None)
        for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    ]
    limits.append(tokenizer.model_max_length)  # a huge number where nobody said
    return min((n for n in limits if isinstance(n, int) and 0 < n < 10**9), default=DEFAULT_CONTEXT)


def check_template(entry: WeightFile, tokenizer: PreTrainedTokenizerFast) -> None:
    """Raise ModelError when a pinned model's chat template is not the one it was pinned with."""
    if chat_template_sha256(tokenizer) != entry.chat_template_sha256:
        raise ModelError(
            f"The chat template of {entry.name} is not the known one, so it is refused: delete the "
            "converted copy in the cache and load the model again."
        )


def _load(source: str, device: torch.device, precision: str, progress: Progress) -> LanguageModel:
    path, entry = _resolve(source, progress)
    folder = path if path.is_dir() else convert_gguf(path, precision, progress)
    hf_model, tokenizer = load_folder(folder, DTYPES[precision], device)
    if entry is not None:
        check_template(entry, tokenizer)
    lean, kernel = lean_decoder(path, hf_model, progress)
    ends = end_ids(tokenizer, hf_model)
    hf_model.generation_config.eos_token_id = sorted(ends)  # its own `generate` stops there as well
    return LanguageModel(
        name=entry.name if entry else source if is_hub_id(source) else path.stem,
        tokenizer=tokenizer,
        hf_model=hf_model,
        context_length=context_length(tokenizer, hf_model),
        end_ids=ends,
        device=device,
        precision=precision,
        weights_path=path,
        lean=lean,
        kernel=kernel,
    )


def _resolve(source: str, progress: Progress) -> tuple[Path, WeightFile | None]:
    """The file or folder that `source` means, and its entry if it is one of the catalogue's."""
    models = [name for name, entry in CATALOGUE.items() if entry.files[0].name.endswith(".gguf")]
    if source in models:
        return ensure(source, progress), CATALOGUE[source]
    path = Path(source).expanduser()
    if source and (path.is_dir() or (path.is_file() and path.suffix == ".gguf")):
        return path, None
    if not path.exists() and is_hub_id(source):
        return fetch_from_hub(source, progress), None
    raise ModelError(
        f"There is no model {source!r}: give one of {', '.join(models)}, a .gguf file, a folder "
        "with safetensors, or a hub id such as owner/name."
    )
