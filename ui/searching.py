"""From a person's question to passages: what they mean is searched for. No Gradio in it.

The chat, the comparison, the four ways, the command line and the HTTP API all look for passages
here. Runs the model that `rag.follow_up` may ask for; whoever calls holds the scheduler's turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from generation.config import GenerationConfig
from generation.decoding import generate
from generation.model import LanguageModel
from rag import follow_up
from rag.follow_up import Origin, SearchQuestion
from rag.retrieval_config import FollowUp, RetrievalConfig
from rag.retrieved import Retrieval

if TYPE_CHECKING:
    from rag.retriever import Retriever

History = Sequence[dict[str, str]]


def needs_model(question: str, history: History, config: RetrievalConfig) -> bool:
    """Whether the model has to read the chat before there is something to search for."""
    wanted = config.follow_up is FollowUp.MODEL
    return wanted and follow_up.depends_on_chat(question, history)


def completed(question: str, history: History, config: RetrievalConfig) -> SearchQuestion:
    """What to search for, as far as it is known without a model."""
    off = config.follow_up is FollowUp.OFF
    if off or not follow_up.depends_on_chat(question, history):
        return SearchQuestion(question)
    return SearchQuestion(follow_up.carry(question, history), Origin.CARRIED)


def rewritten(
    lm: LanguageModel, question: str, history: History, should_stop: Callable[[], bool]
) -> SearchQuestion:
    """What to search for, when the model says what a follow-up question is about (greedily).

    What it said is judged; where it is no use the earlier question is carried along instead.
    """
    started = perf_counter()
    messages = follow_up.request(
        question,
        history,
        count_tokens=lambda messages: len(lm.encode_chat(messages)),
        budget=lm.context_length - follow_up.MAX_TOKENS,
    )
    reply = ""
    if messages is not None:
        config = GenerationConfig(max_new_tokens=follow_up.MAX_TOKENS)
        steps = generate(lm, lm.encode_chat(messages), config, should_stop=should_stop)
        ids = [step.token_id for step in steps if step.token_id not in lm.end_ids]
        reply = lm.decode(ids).strip()
    seconds = perf_counter() - started
    name = follow_up.judge(reply, question, history)
    if name is None:
        text = follow_up.carry(question, history)
        return SearchQuestion(text, Origin.CARRIED, refused=reply, seconds=seconds)
    text = follow_up.complete(question, name)
    return SearchQuestion(text, Origin.REWRITTEN, seconds=seconds)


def retrieve(retriever: Retriever, question: str, config: RetrievalConfig) -> Retrieval:
    """The passages for a question that stands by itself."""
    return retriever.retrieve(
        question,
        k=config.passages,
        document_ids=config.document_ids,
        diversity=config.diversity,
        neighbours=config.neighbours,
    )
