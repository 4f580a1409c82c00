"""What `python -m generation` prints: a line for each token, as a table or as JSON.

Text of a model is text of others: control characters, marks that turn the writing direction and
other invisible signs are shown as escapes, so that they cannot act on the terminal or hide.
Knows plain records; knows no model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from generation.step import Step

HEADER = "     #         p   sampler    rank  entropy    p(end)  token"


def token_record(step: Step, **more: Any) -> dict[str, Any]:
    """One step as plain data, without its candidates' texts twice over. Numbers as in `Step`."""
    record = {
        "type": "token",
        "position": step.position,
        "token_id": step.token_id,
        "text": step.text,
        "logprob": step.logprob,
        "sampler_logprob": step.sampler_logprob,
        "rank": step.rank,
        "entropy": step.entropy,
        "end_prob": step.end_prob,
        "seconds": step.seconds,
        "finish_reason": step.finish_reason,
        "candidates": [
            {
                "token_id": c.token_id,
                "text": c.text,
                "logprob": c.logprob,
                "sampler_logprob": c.sampler_logprob,
            }
            for c in step.candidates
        ],
    }
    return record | more


def as_json(record: Mapping[str, Any]) -> str:
    """One line of JSON. A log-probability of -inf, which JSON lacks, is null."""
    text = json.dumps(_finite(record), ensure_ascii=False, allow_nan=False)
    # Outside its strings JSON is plain ASCII, and inside them these are its own escapes.
    return "".join(sign if sign.isprintable() else _json_escape(sign) for sign in text)


def as_text(record: Mapping[str, Any]) -> str:
    """A record for people: one line for a token or a pass, a few for the whole text."""
    match record["type"]:
        case "run":
            about = "{model}, {precision}, {strategy}, {prompt_tokens} prompt tokens"
            header = "" if record["strategy"] == "jacobi" else f"\n{HEADER}"
            return visible(about.format_map(record)) + header
        case "token":
            return _token_line(record)
        case "pass":
            share = f"{record['final']}/{len(record['token_ids'])} final"
            return f"pass {record['number']:<4} {share:>16}  {record['text']!r}"
        case "hypothesis":
            return f"score {record['score']:8.4f}  {record['text']!r}"
        case _:
            about = "{finish_reason}, {tokens} tokens, {passes} passes, {seconds:.2f} s"
            return f"\n{visible(record['text'])}\n\n{about.format_map(record)}"


def visible(text: str) -> str:
    """`text` with every sign that does not print as an escape; new lines and tabs stay."""
    kept = "\n\t\u3000\u00a0"  # the last two are blanks of ordinary Chinese and French text
    return "".join(sign if sign.isprintable() or sign in kept else _escape(sign) for sign in text)


def _token_line(record: Mapping[str, Any]) -> str:
    slot = f"  [{visible(record['slot'])}]" if "slot" in record else ""
    reason = f"  {record['finish_reason']}" if record.get("finish_reason") else ""
    return (
        f"{record['position']:6d}  {_probability(record.get('logprob'))}  "
        f"{_probability(record.get('sampler_logprob'))}  {_or_dash(record.get('rank'), '6d')}  "
        f"{_or_dash(record.get('entropy'), '7.3f')}  {_or_dash(record.get('end_prob'), '8.4f')}  "
        f"{record['text']!r}{slot}{reason}"
    )


def _probability(logprob: float | None) -> str:
    if logprob is None:
        return f"{'-':>8}"
    value = math.exp(logprob)
    return f"{value:8.4f}" if value >= 1e-4 or value == 0 else f"{value:8.1e}"


def _or_dash(value: float | None, form: str) -> str:
    return f"{'-':>{re.sub('[.a-z].*', '', form)}}" if value is None else format(value, form)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def _json_escape(sign: str) -> str:
    return json.dumps(sign)[1:-1]
