"""POST /v1/glassbox/ways: one question written in four ways, with what each took, as JSON.

An adapter between an HTTP body and `ui.ways.write_ways`. The passes and seconds are those of the
run that this request started.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag.retrieval_config import RetrievalConfig
from ui.api_request import BadRequest, retrieval_options
from ui.parts import Parts
from ui.session import Problem
from ui.ways import DEFAULT_TOKENS, write_ways
from ui.ways_update import WaysUpdate, Written

PATH = "/v1/glassbox/ways"
NAMES = ("question", "template", "max_new_tokens")


@dataclass(frozen=True)
class WaysRequest:
    """A checked request body."""

    question: str
    template: str
    max_new_tokens: int
    retrieval: RetrievalConfig


def parse(body: Any) -> WaysRequest:
    """Check a decoded JSON body. Raises BadRequest, which names what to change."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    if "follow_up" in body:
        raise BadRequest("There is no option follow_up: no chat comes before the question.")
    body = dict(body)
    retrieval = retrieval_options(body)
    unknown = sorted(set(body) - set(NAMES))
    if unknown:
        raise BadRequest(f"There is no option {', '.join(unknown)}.")
    question, template = body.get("question"), body.get("template", "")
    if not isinstance(question, str) or not question.strip():
        raise BadRequest("question must be text.")
    if not isinstance(template, str):
        raise BadRequest("template must be text.")
    max_new_tokens = body.get("max_new_tokens", DEFAULT_TOKENS)
    return WaysRequest(question.strip(), template, max_new_tokens, retrieval)


def handler(
    parts: Parts,
    read_body: Callable[[Request], Awaitable[Any]],
    refuse: Callable[[Problem], Response],
    error: Callable[[int, str], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """The route's function; how bodies are read and errors are worded is `ui.http_api`'s."""

    async def ways(request: Request) -> Response:
        try:
            asked = parse(await read_body(request))
        except BadRequest as problem:
            return error(400, str(problem))
        last = await _run(parts, asked)
        return JSONResponse(_body(parts, last)) if last.problem is None else refuse(last.problem)

    return ways


async def _run(parts: Parts, asked: WaysRequest) -> WaysUpdate:
    stop = Event()

    def drain() -> WaysUpdate:
        updates = write_ways(
            parts,
            asked.question,
            asked.template,
            asked.max_new_tokens,
            asked.retrieval,
            should_stop=stop.is_set,
            session=f"api-{secrets.token_hex(8)}",  # requests are strangers to one another
        )
        *_, last = updates
        return last

    try:
        return await run_in_threadpool(drain)
    except anyio.get_cancelled_exc_class():
        stop.set()
        raise


def _body(parts: Parts, update: WaysUpdate) -> dict[str, Any]:
    used = update.prompt.used if update.prompt is not None else ()
    jacobi: dict[str, Any] = {
        **_written(update.jacobi),
        "equal_to_greedy": update.jacobi_is_greedy,
        "iterations": [
            {
                "number": iteration.number,
                "tokens": list(iteration.texts),
                "final": iteration.final,
                "changed": sorted(iteration.changed),
                "seconds": iteration.seconds,
            }
            for iteration in update.iterations
        ],
    }
    slots = {piece.slot: piece.text for piece in update.pieces if piece.slot is not None}
    return {
        "model": parts.model.name,
        "question": update.question,
        "ways": {
            "autoregression": _written(update.plain),
            "retrieval_autoregression": {
                **_written(update.retrieved),
                "passages": [
                    {"document": p.document, "page": p.page, "start": p.start, "end": p.end}
                    for p in used
                ],
            },
            "parallel": {
                "one_shot": {**_written(update.one_shot), "agreeing_with_greedy": update.agreeing},
                "jacobi": jacobi,
            },
            "template": {**_written(update.template), "slots": slots},
        },
    }


def _written(run: Written | None) -> dict[str, Any]:
    run = run or Written(0)
    return {
        "text": run.text,
        "prompt_tokens": run.prompt_tokens,
        "tokens": run.tokens,
        "passes": run.passes,
        "seconds": run.seconds,
        "finish_reason": run.finish_reason,
    }
