"""What the tests of the page share: hand-made passages, turns, and parts around a tiny model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from generation.scheduler import Scheduler
from generation.step import FinishReason
from rag.prompt import build_messages
from rag.retriever import Retrieval, RetrievedPassage
from tests.fakes import FakeEmbedder
from tests.tiny import tiny_lm
from ui.parts import Parts
from ui.session import AnswerUpdate, Seconds
from ui.turns import Turn

TEXT = "Either party may terminate with three months' notice. Keys are returned on the last day."


def passage(number: int = 1, **changes: Any) -> RetrievedPassage:
    made = RetrievedPassage(
        passage_id=number,
        document_id="d",
        document="lease.pdf",
        page=4,
        heading=("Lease", "Notice"),
        start=0,
        end=len(TEXT),
        text=TEXT,
        score=0.95 - number / 100,
        dense_score=0.9,
        dense_rank=number,
        lexical_score=0.3,
        lexical_rank=None,
        highlight=(0, 53),
        probability=0.95 - number / 100,
    )
    return replace(made, **changes)


def retrieval(*passages: RetrievedPassage, relevant: bool = True, considered: int = 9) -> Retrieval:
    kept, rejected = (passages, ()) if relevant else ((), passages)
    return Retrieval(kept, relevant, {"score": 0.9}, 0.5, 0.01, considered, rejected)


def turn(text: str = "Three months. [1]", found: Retrieval | None = None, **changes: Any) -> Turn:
    """A finished turn whose prompt held the passages found."""
    found = retrieval(passage(1), passage(2)) if found is None else found
    used = found.passages if found.relevant else ()
    prompt = build_messages("How long?", used, count_tokens=lambda m: len(str(m)), budget=10**6)
    update = AnswerUpdate(
        stage="done",
        text=text,
        tokens=5,
        retrieval=found,
        prompt=prompt,
        finish_reason=FinishReason.EOS,
        seconds=Seconds(retrieval=0.01, prefill=0.2, decode=0.4, first_token=0.25),
    )
    return Turn("How long?", replace(update, **changes))


@dataclass
class FakeRetriever:
    found: Retrieval
    asked: tuple | None = None
    options: dict | None = None

    def retrieve(self, query, k=4, document_ids=None, **options: Any) -> Retrieval:
        self.options = options
        self.asked = (query, k, document_ids)
        return self.found


class EmptyStore:
    def documents(self) -> list:
        return []


def parts(found: Retrieval | None = None, **model: Any) -> Parts:
    """Real generation on a tiny random model; retrieval finds what it is told to find."""
    retriever = FakeRetriever(found or retrieval(passage(1), passage(2)))
    model = {"context": 2048, **model}
    return Parts(tiny_lm(**model), EmptyStore(), FakeEmbedder(), retriever, Scheduler())  # type: ignore[arg-type]
