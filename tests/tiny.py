"""Tiny random language models of four architectures, built in the test that needs them.

Real transformers modules with random weights and a real byte-level tokenizer of 256 bytes plus
three control tokens: small enough to run thousands of steps.
"""

from __future__ import annotations

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    GemmaConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from generation.model import LanguageModel

ARCHITECTURES = ("llama", "qwen2", "gpt2", "gemma")
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VOCABULARY = 256 + len(CONTROL)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Every byte a token (no merges), then the control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in CONTROL])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")


def tiny_config(architecture: str, context: int, vocabulary: int):
    shape = dict(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=context,
    )
    match architecture:
        case "llama":
            return LlamaConfig(**shape)
        case "qwen2":
            return Qwen2Config(**shape)
        case "gemma":
            return GemmaConfig(**shape, head_dim=8)
        case "gpt2":
            return GPT2Config(
                vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=4, n_positions=context
            )
    raise ValueError(architecture)


def tiny_lm(
    architecture: str = "llama",
    *,
    seed: int = 0,
    context: int = 512,
    vocabulary: int = VOCABULARY,
    end_ids: frozenset[int] = frozenset({256, 258}),
) -> LanguageModel:
    """A random model in fp32 on the CPU.

    The output layer is scaled up so that distributions are peaked as those of trained models are:
    near-uniform ones would let rounding decide between tokens.
    """
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(tiny_config(architecture, context, vocabulary))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.25)
    return LanguageModel(
        name=f"tiny-{architecture}",
        tokenizer=tiny_tokenizer(),
        hf_model=model.eval(),
        context_length=context,
        end_ids=end_ids,
        device=torch.device("cpu"),
        precision="fp32",
    )
