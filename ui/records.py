"""Answers and passages as plain data: what the command line prints as JSON and the HTTP API sends.

Needs no language model, so that `glassbox search` starts without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag.retrieved import Retrieval, RetrievedPassage
    from ui.session import AnswerUpdate


def passage_record(passage: RetrievedPassage) -> dict[str, Any]:
    """`start` and `end` count characters of the document's text; ranks are places from 1."""
    return {
        "document": passage.document,
        "document_id": passage.document_id,
        "page": passage.page,
        "start": passage.start,
        "end": passage.end,
        "score": passage.score,
        "probability": passage.probability,
        "rank": passage.rank,
        "dense_rank": passage.dense_rank,
        "dense_score": passage.dense_score,
        "lexical_rank": passage.lexical_rank,
        "lexical_score": passage.lexical_score,
        "rerank_score": passage.rerank_score,
        "signals": {signal.name: signal.contribution for signal in passage.signals},
        "joined": len(passage.joined),
        "dropped": passage.dropped and str(passage.dropped),
        "text": passage.text,
    }


def retrieval_record(retrieval: Retrieval) -> dict[str, Any]:
    """What was found; `rejected` came close, each with the reason why it was `dropped`."""
    return {
        "relevant": retrieval.relevant,
        "threshold": retrieval.threshold,
        "considered": retrieval.considered,
        "seconds": retrieval.seconds,
        "passages": [passage_record(passage) for passage in retrieval.passages],
        "rejected": [passage_record(passage) for passage in retrieval.rejected],
    }


def answer_record(update: AnswerUpdate) -> dict[str, Any]:
    """The passages are those that were in the prompt, [1] first; `left_out` did not fit into it.

    `searched_for` is None without retrieval; its `origin` says whether the chat completed it.
    """
    prompt, search, retrieval = update.prompt, update.search, update.retrieval
    return {
        "answer": update.text,
        "finish_reason": update.finish_reason and str(update.finish_reason),
        "prompt_tokens": prompt.tokens if prompt else 0,
        "completion_tokens": update.tokens,
        "searched_for": search and {"text": search.text, "origin": str(search.origin)},
        "passages": [passage_record(passage) for passage in prompt.used] if prompt else [],
        "left_out": [passage_record(passage) for passage in prompt.dropped] if prompt else [],
        "rejected": [passage_record(p) for p in retrieval.rejected] if retrieval else [],
        "considered": retrieval.considered if retrieval else 0,
        "history_dropped": prompt.history_dropped if prompt else 0,
        "seconds": {
            "rewriting": update.seconds.rewriting,
            "retrieval": update.seconds.retrieval,
            "prefill": update.seconds.prefill,
            "decode": update.seconds.decode,
        },
    }
