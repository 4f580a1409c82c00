"""A question, its passages and the conversation so far to chat messages within a token budget.

Plain data in, plain data out: the token counter is handed in, and each part says whether we wrote
it (trusted) or a person or a document did (untrusted), so that whoever encodes it can keep the
second kind from becoming control tokens. When not all fits, the question always stays; the oldest
exchanges go first, then the lowest passages, then the newest exchange, then the best passage.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.retriever import RetrievedPassage
from rag.terms import has_han, script_of

CountTokens = Callable[[list[dict]], int]

# The system turn is the same with and without passages, so that a comparison of the two differs in
# nothing but the passages and what is said of them. Small models find an answer they were given
# when the sentence nearest to the question is said again beside it, and when they may use the
# passages' own words: of 40 to 50 XQuAD questions (one half of the articles) with the best passage,
# qwen-0.5b answered .52 in English and .38 in Chinese with the question alone after the passage,
# .68 and .48 with the sentence before the question, .68 and .65 with it between the question and
# an instruction to answer in one sentence. Without the sentence that instruction gave .54 and .43.
# On the other half, the words below give .77 and .70 (`python -m benchmarks.answers --data DIR
# --split test --questions 60 --passages 1`). Called "the most relevant sentence", 6 of 40 English
# answers repeated that name; with this one 1 of 40 does. Answers are longer for it, and mostly that
# sentence: which one is said again decides (it holds the answer for .79 to .81 of the questions,
# `benchmarks.retrieval`). Asking to cite costs the answer: rag/citations.py finds what stands
# behind it.
_WORDS = {
    "en": {
        "system": "You are a helpful assistant.",
        "question": "Question: ",
        "key": "\nFrom the passages: ",
        "how": "\nAnswer from the passages above in full sentences, in their own words.",
        "translate": "\nAnswer from the passages above in full sentences, in English.",
    },
    "zh": {
        "system": "你是一个乐于助人的助手。",
        "question": "问题：",
        "key": "\n最相关的句子：",
        "how": "\n请根据以上段落，用段落中的原话和完整的句子回答。",
        "translate": "\n请根据以上段落，用中文和完整的句子回答。",
    },
}


@dataclass(frozen=True)
class Prompt:
    """What the model is shown, and what did not fit.

    Passage `[n]` of the messages is `used[n - 1]`. `history_dropped` counts messages of the
    history that were left out; `tokens` is the size of `messages` as counted.
    """

    messages: list[dict]
    used: tuple[RetrievedPassage, ...]
    dropped: tuple[RetrievedPassage, ...]
    history_dropped: int
    tokens: int


class QuestionTooLong(ValueError):
    """The question alone, with nothing else, is over the budget."""

    def __init__(self, tokens: int, budget: int) -> None:
        super().__init__(
            f"The question takes {tokens} tokens and there is room for {budget}: shorten it"
        )
        self.tokens, self.budget = tokens, budget


def build_messages(
    question: str,
    passages: Sequence[RetrievedPassage],
    history: Sequence[Mapping[str, str]] = (),
    *,
    count_tokens: CountTokens,
    budget: int,
    system: str | None = None,
    language: str = "en",
) -> Prompt:
    """Messages of at most `budget` tokens, as `count_tokens` counts them.

    Args:
        passages: best first.
        history: earlier "user" and "assistant" messages, oldest first; only whole exchanges of a
            question and its answer are kept.
        system: replaces our words in the system turn; untrusted.
        language: of our words when the question itself does not tell.

    Raises QuestionTooLong when not even the question fits. The counter is called a logarithmic
    number of times, not once a message.
    """
    words = _WORDS[_language_of(question, language)]
    opening = _trusted(words["system"]) if system is None else _untrusted(system)
    exchanges = _exchanges(history)
    # An answer has a token at least: what cannot fit is not counted, of a chat of any length.
    exchanges = exchanges[max(0, len(exchanges) - max(0, budget)) :]
    choices = _from_most_to_least(len(passages), len(exchanges))

    def assemble(choice: tuple[int, int]) -> tuple[list[dict], int]:
        kept_passages, kept_exchanges = choice
        messages = [
            {"role": "system", "content": [opening]},
            *(turn for pair in exchanges[len(exchanges) - kept_exchanges :] for turn in pair),
            {"role": "user", "content": _ask(question, passages[:kept_passages], words)},
        ]
        return messages, count_tokens(messages)

    low, high = 0, len(choices) - 1  # the first choice that fits lies in low..high, if any does
    fitting = assemble(choices[0])
    if fitting[1] > budget:
        low = 1
        fitting = assemble(choices[high])
        if fitting[1] > budget:
            raise QuestionTooLong(fitting[1], budget)
        while low < high:
            middle = (low + high) // 2
            tried = assemble(choices[middle])
            if tried[1] <= budget:
                high, fitting = middle, tried
            else:
                low = middle + 1
    kept_passages, kept_exchanges = choices[low]
    messages, tokens = fitting
    return Prompt(
        messages,
        tuple(passages[:kept_passages]),
        tuple(passages[kept_passages:]),
        len(history) - 2 * kept_exchanges,
        tokens,
    )


def _from_most_to_least(passages: int, exchanges: int) -> list[tuple[int, int]]:
    """How many passages and newest exchanges to keep; each choice is a part of the one before."""
    best, newest = min(1, passages), min(1, exchanges)
    choices = [(passages, kept) for kept in range(exchanges, newest, -1)]
    choices += [(kept, newest) for kept in range(passages, best, -1)]
    choices += [(best, newest), (best, 0), (0, 0)]
    return list(dict.fromkeys(choices))


def _exchanges(history: Sequence[Mapping[str, str]]) -> list[list[dict]]:
    """Each question with its answer. What has no answer, or none yet, would only confuse."""
    pairs = []
    for asked, answered in pairwise(history):
        if (asked["role"], answered["role"]) == ("user", "assistant") and answered["content"]:
            pairs.append([_turn(asked), _turn(answered)])
    return pairs


def _turn(message: Mapping[str, str]) -> dict:
    return {"role": message["role"], "content": [_untrusted(message["content"])]}


def _ask(
    question: str, passages: Sequence[RetrievedPassage], words: Mapping[str, str]
) -> list[dict]:
    if not passages:
        return [_untrusted(question)]
    parts = []
    for number, passage in enumerate(passages, start=1):
        parts += [
            _trusted(f"[{number}] "),
            _untrusted(passage.document),
            _trusted("\n"),
            _untrusted(passage.text),
            _trusted("\n\n"),
        ]
    parts += [_trusted(words["question"]), _untrusted(question)]
    best = passages[0]
    if best.highlight is not None:
        parts += [_trusted(words["key"]), _untrusted(best.text[slice(*best.highlight)])]
    same_language = script_of(best.text) == script_of(question)
    return [*parts, _trusted(words["how" if same_language else "translate"])]


def _language_of(question: str, otherwise: str) -> str:
    """The answer should come in the question's language, whatever the page's is."""
    if has_han(question):
        return "zh"
    return "en" if any(character.isalpha() for character in question) else otherwise


def _trusted(text: str) -> dict:
    return {"type": "text", "text": text, "trusted": True}


def _untrusted(text: str) -> dict:
    return {"type": "text", "text": text, "trusted": False}
