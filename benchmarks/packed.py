"""What the packed weights change: perplexity on corpus/, and how many greedy tokens stay equal.

    python -m benchmarks.packed --model smollm2 [--precision fp32] [--tokens 512]

Every position of the beginning of each document is predicted from the true text before it, once by
the transformers module in the given precision and once by the compiled step, eight tokens at a
time. Both keep keys and values in the module's precision. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

from generation.decoding import new_cache
from generation.lean import MAX_ROWS
from generation.model import LanguageModel, load_model

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


@torch.inference_mode()
def by_module(lm: LanguageModel, ids: Tensor) -> Tensor:
    """Logits (T, V) of the module in one pass over ids (1, T)."""
    return lm.hf_model(input_ids=ids, use_cache=False).logits[0].float()


def by_lean_steps(lm: LanguageModel, ids: Tensor) -> Tensor:
    """Logits (T, V) of the compiled step, which starts with an empty cache."""
    assert lm.lean is not None, lm.kernel
    cache = new_cache(lm, ids.shape[1])
    parts = [lm.lean.step(cache, part, part.shape[1])[0] for part in ids.split(MAX_ROWS, dim=1)]
    return torch.cat(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--precision", default="bf16", help="of the module")
    parser.add_argument("--language", default="en", choices=("en", "zh"))
    parser.add_argument("--documents", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=512, help="of each document")
    options = parser.parse_args()

    lm = load_model(options.model, "cpu", options.precision)
    losses: dict[str, list[Tensor]] = {"module": [], "compiled": []}
    equal = []
    for path in sorted((CORPUS / options.language).glob("*.md"))[: options.documents]:
        ids = torch.tensor([lm.encode(path.read_text(encoding="utf-8"))[: options.tokens]])
        logits = {"module": by_module(lm, ids), "compiled": by_lean_steps(lm, ids)}
        for name, values in logits.items():
            losses[name].append(
                torch.nn.functional.cross_entropy(values[:-1], ids[0, 1:], reduction="none")
            )
        equal.append(logits["module"].argmax(-1) == logits["compiled"].argmax(-1))
    perplexity = {name: torch.cat(values).mean().exp().item() for name, values in losses.items()}
    share = torch.cat(equal).float().mean().item()
    print(f"{lm.name}, {options.language}, {torch.cat(equal).numel()} positions; {lm.kernel}")
    print(f"perplexity by the module in {options.precision}: {perplexity['module']:.4f}")
    print(f"perplexity by the compiled step: {perplexity['compiled']:.4f}")
    print(f"equal most likely tokens: {share:.2%}")
    print(json.dumps({"model": lm.name, "equal": share, **perplexity}))


if __name__ == "__main__":
    main()
