"""OpenAI-compatible routes beside the page: /v1/models, /v1/chat/completions, and /health.

An adapter over `ui.session.answer`: the same retrieval, prompt and loop as the page, as JSON. What
OpenAI's API has no word for has the names of `GenerationConfig`, `Method` and `RetrievalConfig`;
`"retrieval": false` lets the model answer alone.

With a password on the page, these routes ask for the same one (HTTP Basic).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Event
from typing import Any

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ui.api_request import BadRequest, ChatRequest, parse
from ui.i18n import t
from ui.parts import Parts
from ui.records import answer_record
from ui.session import AnswerUpdate, Problem, answer
from ui.ways_api import PATH as WAYS_PATH
from ui.ways_api import handler as ways_handler

MAX_BODY = 4 * 1024 * 1024  # bytes; a window of 32,768 tokens is a fraction of it
FINISH = {"eos": "stop", "stop_string": "stop", "length": "length", "context_full": "length"}
STATUS = {
    "error.busy": 429,
    "error.too_long": 400,
    "error.memory": 503,
    "error.documents": 503,
    "error.setting": 400,
    "ways.bad_template": 400,
}


def routes(parts: Parts, auth: tuple[str, str] | None = None) -> list[Route]:
    """What to mount beside the page."""

    async def models(_: Request) -> Response:
        model = {"id": parts.model.name, "object": "model", "owned_by": "glassbox"}
        return JSONResponse({"object": "list", "data": [model]})

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "waiting": parts.scheduler.waiting})

    async def chat(request: Request) -> Response:
        try:
            asked = parse(await _body(request))
        except BadRequest as error:
            return _error(400, str(error))
        stop = Event()
        updates = _answers(parts, asked, stop)
        if asked.stream:
            return await _stream(parts, asked, updates, stop)
        last = await run_in_threadpool(_last, updates)
        if last.problem is not None:
            return _problem(last.problem)
        return JSONResponse(_completion(parts, asked, last))

    ways = ways_handler(parts, _body, _problem, _error)
    guarded = _password(auth)
    return [
        Route("/health", health),
        Route("/v1/models", guarded(models)),
        Route("/v1/chat/completions", guarded(chat), methods=["POST"]),
        Route(WAYS_PATH, guarded(ways), methods=["POST"]),
    ]


def _answers(parts: Parts, asked: ChatRequest, stop: Event) -> Iterator[AnswerUpdate]:
    return answer(
        parts,
        asked.question,
        asked.history,
        asked.config,
        asked.retrieval,
        should_stop=stop.is_set,
        session=f"api-{secrets.token_hex(8)}",  # requests are strangers to one another
        system=asked.system,
        method=asked.method,
    )


def _last(updates: Iterator[AnswerUpdate]) -> AnswerUpdate:
    last = AnswerUpdate("retrieving")
    for update in updates:
        last = update
    return last


async def _stream(
    parts: Parts, asked: ChatRequest, updates: Iterator[AnswerUpdate], stop: Event
) -> Response:
    """Server-sent events. A problem before the first token is still a proper error response."""
    frame = _frame(parts, "chat.completion.chunk")
    incoming = iterate_in_threadpool(updates)
    first = await anext(incoming)
    while not first.tokens and first.stage != "done":
        first = await anext(incoming)
    if first.problem is not None:
        return _problem(first.problem)

    async def events() -> AsyncIterator[str]:
        sent, steps = 0, 0
        update = first
        try:
            yield _event(frame, {"role": "assistant", "content": ""})
            while True:
                # A draft of beam search can still change, so only a finished one is sent.
                if asked.config.num_beams == 1 or update.stage == "done":
                    delta: dict[str, Any] = {"content": update.text[sent:]}
                    logprobs = _logprobs(update.steps[steps:]) if asked.logprobs else None
                    sent, steps = len(update.text), len(update.steps)
                    if delta["content"] or logprobs:
                        yield _event(frame, delta, logprobs=logprobs)
                if update.stage == "done":
                    break
                update = await anext(incoming)
            if update.problem is not None:
                yield f"data: {json.dumps(_error_body(_sentence(update.problem)))}\n\n"
            else:
                extra = {"usage": _usage(update), "glassbox": _glassbox(update)}
                yield _event({**frame, **extra}, {}, finish=_finish(update))
            yield "data: [DONE]\n\n"
        finally:
            stop.set()  # the client may be gone: the loop ends at its next token

    return StreamingResponse(events(), media_type="text/event-stream")


def _frame(parts: Parts, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": parts.model.name,
    }


def _event(
    frame: dict[str, Any], delta: dict[str, Any], finish: str | None = None, logprobs: Any = None
) -> str:
    choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish}
    if logprobs is not None:
        choice["logprobs"] = logprobs
    return f"data: {json.dumps({**frame, 'choices': [choice]}, ensure_ascii=False)}\n\n"


def _completion(parts: Parts, asked: ChatRequest, update: AnswerUpdate) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": update.text},
        "finish_reason": _finish(update),
    }
    if asked.logprobs:
        choice["logprobs"] = _logprobs(update.steps)
    return {
        **_frame(parts, "chat.completion"),
        "choices": [choice],
        "usage": _usage(update),
        "glassbox": _glassbox(update),
    }


def _finish(update: AnswerUpdate) -> str | None:
    return FINISH.get(str(update.finish_reason), "stop")


def _usage(update: AnswerUpdate) -> dict[str, int]:
    prompt = update.prompt.tokens if update.prompt else 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": update.tokens,
        "total_tokens": prompt + update.tokens,
    }


def _glassbox(update: AnswerUpdate) -> dict[str, Any]:
    """What OpenAI's format has no place for: the exact reason, what was found, the times."""
    said = ("answer", "prompt_tokens", "completion_tokens")
    return {name: value for name, value in answer_record(update).items() if name not in said}


def _logprobs(steps: Any) -> dict[str, Any] | None:
    if not steps:
        return None

    def entry(token: Any) -> dict[str, Any]:
        return {
            "token": token.text,
            "logprob": token.logprob,
            "bytes": list(token.text.encode()),
        }

    return {
        "content": [{**entry(s), "top_logprobs": [entry(c) for c in s.candidates]} for s in steps]
    }


async def _body(request: Request) -> Any:
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise BadRequest(f"The body is larger than {MAX_BODY} bytes.")
        return json.loads(_whole_characters(body))
    except (ValueError, RecursionError, ClientDisconnect) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest("The body is not JSON.") from None


def _whole_characters(body: bytes) -> str:
    """The JSON text of `body` with U+FFFD for half surrogate pairs, which no answer can carry.

    They come from clients that cut a text in the middle of an emoji: `"\\ud83d"`.
    """
    text = json.dumps(json.loads(body), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sentence(problem: Problem) -> str:
    return t("en", problem.key, **problem.values)


def _problem(problem: Problem) -> Response:
    status = STATUS.get(problem.key, 500)
    return _error(status, _sentence(problem), {"Retry-After": "10"} if status == 429 else None)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(_error_body(message), status, headers)


def _error_body(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "glassbox_error"}}


def _password(auth: tuple[str, str] | None) -> Callable:
    """A wrapper that asks for user and password, when the page does."""

    def guard(handler: Callable) -> Callable:
        if auth is None:
            return handler

        async def checked(request: Request) -> Response:
            if not _allowed(request.headers.get("authorization", ""), auth):
                return _error(401, "User and password are needed.", {"WWW-Authenticate": "Basic"})
            return await handler(request)

        return checked

    return guard


def _allowed(header: str, auth: tuple[str, str]) -> bool:
    kind, _, value = header.partition(" ")
    try:
        given = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return kind.lower() == "basic" and hmac.compare_digest(given, ":".join(auth).encode())
