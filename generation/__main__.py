r"""Write a text from the command line and show what each token was chosen from.

    python -m generation "What is the capital of France?" --model smollm2
    python -m generation "Once upon a time" --raw --strategy sample --top-p 0.9 --seed 7
    python -m generation "Is Paris large?" --regex "(yes|no), because [^.]+\."
    python -m generation "Fill in the form." --context "..." --template "Name: {{name}}"

Knows no way of writing a text itself: it drains the same loops as the page. Errors are one
sentence; the exit status is 2 for options that make no sense, 1 for anything that goes wrong later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import chain
from time import perf_counter
from typing import Any

from generation.beam_search import beam_search
from generation.command_options import PARALLEL, PROGRAM, Request, parse
from generation.command_output import as_json, as_text, token_record, visible
from generation.decoding import PREFILL_CHUNK
from generation.errors import ChatTemplateError, ModelError, WeightsError
from generation.model import LanguageModel, load_model
from generation.parallel import jacobi_decode, one_shot
from generation.progress import TerminalProgress
from generation.scoring import score
from generation.step import FinishReason, Step
from generation.strategies import strategy_name, write
from generation.template_filling import fill_template

Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    request = parse(sys.argv[1:] if arguments is None else arguments)
    show = as_json if request.as_json else as_text
    if isinstance(sys.stdout, TextIOWrapper):  # a terminal that cannot show a sign gets its number
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        lm = load_model(request.model, request.device, request.precision, TerminalProgress())
        if lm.notice:
            print(visible(lm.notice), file=sys.stderr)
        for record in records(lm, request):
            print(show(record), flush=True)
    except ValueError as error:  # a prompt too long, a bad form: something else must be asked for
        return _fail(error, 2)
    except (ModelError, WeightsError, ChatTemplateError, FloatingPointError, MemoryError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # such as `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def records(lm: LanguageModel, request: Request) -> Iterator[Record]:
    """Everything that is printed, as plain data: the run, its tokens or passes, and the end."""
    ids = prompt_ids(lm, request, request.context)
    name = strategy_name(request.config, request.method)
    started = perf_counter()
    run = _run(lm, ids, request)
    first = next(run)  # what cannot be done is said before anything is shown
    yield {
        "type": "run",
        "model": lm.name,
        "precision": lm.precision,
        "strategy": request.strategy if request.strategy in (*PARALLEL, "template") else name,
        "prompt_tokens": len(ids),
    }
    for record in chain([first], run):
        if record["type"] == "end":
            record["seconds"] = perf_counter() - started
        yield record


def _run(lm: LanguageModel, ids: list[int], request: Request) -> Iterator[Record]:
    match request.strategy:
        case "template":
            return _template(lm, ids, request)
        case "one-shot":
            return _one_shot(lm, ids, request)
        case "jacobi":
            return _jacobi(lm, ids, request)
    return (_beams if request.config.num_beams > 1 else _loop)(lm, ids, request)


def prompt_ids(lm: LanguageModel, request: Request, context: str) -> list[int]:
    """The prompt's token ids, with `context` before it; text never becomes a control token."""
    text = f"{context}\n\n{request.prompt}" if context else request.prompt
    if request.raw:
        return [*lm.text_encoder.bos_ids, *lm.encode(text)]
    system = [{"role": "system", "content": request.system}] if request.system else []
    return lm.encode_chat([*system, {"role": "user", "content": text}])


def _loop(lm: LanguageModel, ids: list[int], request: Request) -> Iterator[Record]:
    method = request.method
    without = prompt_ids(lm, request, "") if method.context_alpha else None
    steps: list[Step] = []
    for step in write(lm, ids, request.config, method, without_ids=without):
        steps.append(step)
        yield token_record(step)
    sides = [ids] if without is None else [ids, without]
    passes = sum(-(-len(side) // PREFILL_CHUNK) + len(steps) - 1 for side in sides)
    passes += method.penalty_alpha > 0  # which tries the candidates of the last token too
    yield _end(lm, [s.token_id for s in steps], steps[-1].finish_reason, passes)


def _beams(lm: LanguageModel, ids: list[int], request: Request) -> Iterator[Record]:
    updates = list(beam_search(lm, ids, request.config))
    best = updates[-1].best
    passes = -(-len(ids) // PREFILL_CHUNK) + len(updates) - 1
    for one in score(lm, ids, best.token_ids):  # the same numbers, and more of them
        record = {name: getattr(one, name) for name in ("token_id", "text", "logprob", "rank")}
        yield {"type": "token", "position": len(ids), **record, "entropy": one.entropy}
        ids = [*ids, one.token_id]
    for hypothesis in updates[-1].finished:
        shown = {name: getattr(hypothesis, name) for name in ("text", "score", "logprob")}
        yield {"type": "hypothesis", **shown, "finish_reason": hypothesis.finish_reason}
    yield _end(lm, best.token_ids, best.finish_reason, passes)


def _one_shot(lm: LanguageModel, ids: list[int], request: Request) -> Iterator[Record]:
    guess = one_shot(lm, ids, request.config.max_new_tokens)
    for n, (token_id, logprob) in enumerate(zip(guess.token_ids, guess.logprobs, strict=True)):
        record = {"position": len(ids) + n, "token_id": token_id, "text": lm.decode([token_id])}
        yield {"type": "token", **record, "logprob": logprob}
    yield _end(lm, guess.token_ids, FinishReason.LENGTH, guess.passes)


def _jacobi(lm: LanguageModel, ids: list[int], request: Request) -> Iterator[Record]:
    for last in jacobi_decode(lm, ids, request.config.max_new_tokens):
        names = ("number", "token_ids", "text", "final", "passes")
        yield {"type": "pass"} | {name: getattr(last, name) for name in names}
    yield _end(lm, last.token_ids, last.finish_reason, last.passes)


def _template(lm: LanguageModel, ids: list[int], request: Request) -> Iterator[Record]:
    tokens = 0
    for update in fill_template(lm, ids, request.template, request.config):
        if update.step is not None:
            tokens += 1
            yield token_record(update.step, slot=update.slot)
    reasons = {slot.name: slot.finish_reason for slot in update.slots}
    filled = {"values": update.values, "finish_reasons": reasons}
    end = {"text": update.text, "finish_reason": "filled", "tokens": tokens}
    yield {"type": "end", **end, "passes": update.passes, **filled}


def _end(
    lm: LanguageModel, token_ids: Sequence[int], reason: FinishReason | None, passes: int
) -> Record:
    text = lm.decode([token_id for token_id in token_ids if token_id not in lm.end_ids])
    end = {"text": text, "finish_reason": reason, "tokens": len(token_ids)}
    return {"type": "end", **end, "passes": passes}


def _fail(error: BaseException, status: int) -> int:
    print(visible(f"{PROGRAM}: {' '.join(str(error).split())}"), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
