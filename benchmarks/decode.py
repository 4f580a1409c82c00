"""Decoding speed on the CPU: our loop against transformers' module, same weights, same process.

    python -m benchmarks.decode --model smollm2 --contexts 256 1024

The ways take turns, so that whatever else the machine does falls on all of them; each figure is the
median of the rounds with the range of the middle half. The physical limit of decoding is the memory
bandwidth over the bytes read for a token; both are measured here, and the share reached is printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import islice
from statistics import quantiles
from time import perf_counter

import torch
from torch import Tensor

from generation.config import GenerationConfig
from generation.decoding import forward, generate, new_cache, prefill
from generation.kv_cache import KVCache
from generation.lean import LeanDecoder
from generation.model import LanguageModel, load_model

TOKENS = 32  # decoded in one turn


def bandwidth(megabytes: int = 512) -> float:
    """Bytes a second that all threads of torch together read, the best of a few times."""
    data = torch.ones(megabytes << 18, dtype=torch.int32)
    times = []
    for _ in range(8):
        started = perf_counter()
        data.sum(dtype=torch.int32)
        times.append(perf_counter() - started)
    return data.nbytes / min(times)


@torch.inference_mode()
def module_step(lm: LanguageModel, cache: KVCache, token: Tensor) -> Tensor:
    """A step by the transformers module over our cache: logits `(1, V)`."""
    return lm.hf_model(input_ids=token, cache=cache, use_cache=True).logits[:, -1]


def steps_a_second(
    step: Callable[[KVCache, Tensor], Tensor], cache: KVCache, token: Tensor
) -> float:
    """Greedy steps on a copy of the cache, the choice included."""
    cache = cache.fork()
    started = perf_counter()
    for _ in range(TOKENS):
        token = step(cache, token).argmax(dim=-1, keepdim=True)
    return TOKENS / (perf_counter() - started)


def full_steps_a_second(lm: LanguageModel, cache: KVCache, ids: list[int]) -> float:
    """The loop that the app runs, with candidates, entropy and text for every token."""
    config = GenerationConfig(max_new_tokens=TOKENS + 1)
    run = generate(lm, ids, config, cache.fork())
    next(run)  # its time has the last of the prompt in it
    started = perf_counter()
    count = sum(1 for _ in islice(run, TOKENS))
    return count / (perf_counter() - started)


def measure(lm: LanguageModel, context: int, rounds: int) -> dict[str, list[float]]:
    """Tokens a second of every way after a prompt of `context` tokens."""
    ids = (lm.encode("The river was wide and the boats were slow. ") * context)[:context]
    cache = new_cache(lm, context + 2 * TOKENS)
    token = prefill(lm, cache, ids).argmax(dim=-1, keepdim=True)
    ways: dict[str, Callable[[], float]] = {
        "module": lambda: steps_a_second(lambda c, t: module_step(lm, c, t), cache, token),
        "ours": lambda: steps_a_second(lambda c, t: forward(lm, c, t)[:, -1], cache, token),
        "ours, full steps": lambda: full_steps_a_second(lm, cache, [*ids, int(token)]),
    }
    for rows in (2, 4, 8):
        wide = cache.fork()
        wide.reorder(torch.zeros(rows, dtype=torch.long))
        tokens = token.repeat(rows, 1)
        ways[f"ours, {rows} rows"] = lambda wide=wide, tokens=tokens: steps_a_second(
            lambda c, t: forward(lm, c, t)[:, -1], wide, tokens
        )
    for run in ways.values():
        run()  # warm
    figures: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            figures[name].append(run())
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--precision", default="bf16", help="of the module, which reads prompts")
    parser.add_argument("--contexts", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="of our step (default: what the app uses)")
    options = parser.parse_args()

    lm = load_model(options.model, "cpu", options.precision)
    if options.threads and lm.lean is not None:
        lm.lean = LeanDecoder(lm.hf_model, lm.lean.weights, options.threads)
    speed = bandwidth()
    read = lm.lean.weights.step_nbytes if lm.lean else 0
    print(f"{lm.name}: {lm.kernel}; {torch.get_num_threads()} threads, {speed / 1e9:.1f} GB/s")
    result: dict[str, object] = {"model": lm.name, "kernel": lm.kernel, "bandwidth": speed}
    for context in options.contexts:
        for name, values in measure(lm, context, options.rounds).items():
            low, middle, high = quantiles(values, n=4)
            share = f"{middle * read / speed:5.0%} of the limit" if name == "ours" and read else ""
            print(f"{context:5}  {name:18} {middle:7.1f} steps/s ({low:.1f}-{high:.1f})  {share}")
            result[f"{name} @ {context}"] = round(middle, 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
