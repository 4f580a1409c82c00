"""A follow-up question made self-contained, so that it can be searched for without the chat.

Decides whether a question leans on the conversation, asks a model what it is about, judges what
came back and puts it into the question, and has something to fall back on. Knows no model and no
search. A small model that is asked to write the question again copies it or answers it (of 20, none
came out changed for the better); one that is asked for the name of the thing mostly knows it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from rag.terms import content_terms, has_han, tokenize

CountTokens = Callable[[list[dict]], int]
History = Sequence[Mapping[str, str]]

MAX_TOKENS = 16  # of the model's reply
MAX_TERMS = 10  # of the name of a thing: a longer reply is an answer
MOST_EXCHANGES = 2
MOST_CARRIED = 8  # earlier questions
MAX_CARRIED = 1_000  # characters of each, its end: what is asked comes last
MAX_ANSWER = 300  # characters of an earlier answer that are shown: what it is about comes first

# What points back into the conversation, in English. "it" does not in "is it true that", nor "that"
# where a clause follows, as in "the token that ends a text".
_REFERS = re.compile(
    r"""\b(?: its | they | them | theirs? | these | those | he | him | his | she | hers?
      | former | latter | ones | else | instead | again | there | this | another | same
      | (?: that | which | other | last | first | second | third | next | would ) \s one
      | (?: the | which | what | any ) \s others?
      | (?: the | that ) \s (?: first | second | third | last | next | previous )
      | it (?! \s (?: true | possible | correct | right ) \s (?: that | to ) \b )
      | (?: is | was | are | does | did | do | about | of | for | with | than | like | after
          | before | by | to | from | why | how | and ) \s that
      | that (?= \W* $ )
    )\b | ^ \W* that \b""",
    re.IGNORECASE | re.VERBOSE,
)
_OPENS = re.compile(
    r"""^ \W* (?: and | but | or | so | also | then | more | what \s about | how \s about ) \b
      | ^ \W* (?: why | how | when | where | who | really | how \s \w+ ) \W* $""",
    re.IGNORECASE | re.VERBOSE,
)
_REFERS_ZH = re.compile(
    r"它|(?<![其吉排])[他她](?!人)|其(?![他实中余次])|这|(?<!应)那|此(?!外)|上述|前者|后者|两者|二者"
    r"|同样|另外?一|其他的?(?:方法|方式|办法|呢|$)|[上下]一代|共用一个"
)
_OPENS_ZH = re.compile(
    r"^\W*(?:然后|还有|而|但|所以|以及|另外|此外|接着|之后|除此之外)|呢[?？\s]*$"
)
_DEFINES = re.compile(r"^\W*(?:what(?:'s| is| are| was| were)|who (?:is|was|are))\b", re.IGNORECASE)
_DEFINES_ZH = re.compile(r"什么是|是什么|何谓|指什么")
_ASKS_ZH = re.compile(
    r"为什么|什么时候|什么|怎么样|怎么|怎样|如何|哪里|哪些|哪个|多少|到底|有时|[会吗呢的了是有做]"
)
_FEW_CHARACTERS = 3  # of Chinese, beside what only asks: fewer name no subject
_QUOTES = "\"'“”‘’「」『』*`.。,，:：;；!！ "
# What the name of the thing takes the place of, and what stays behind it.
_STANDS_FOR = re.compile(
    r"\b(?P<own>its|their|his|her(?= \w))\b|\b(?:it|they|them|these|those|he|him|she|"
    r"(?:this|that)(?= (?:is|was|has|does|do|can|will|leave|mean|work|help|one)\b|\W*$))\b"
    r"|\b(?P<before>is|was|of|for|about|with|than|like|does|did) (?:this|that)\b",
    re.IGNORECASE,
)
_STANDS_FOR_ZH = re.compile(
    r"它们?|他们?|她们?|这(?:个|些|种|样做?|么做)?(?!里|时)|那(?:个|些|种)(?!么)|^那(?=会|是)"
)

_WORDS = {
    "en": {
        "system": "Name the thing that the next question is about, in a few words.",
        "question": "Question: ",
        "answer": "\nAnswer: ",
        "next": "Next question: ",
        "ask": "\nWhich thing from above is the next question about?",
        "examples": (
            (
                "How tall is the Eiffel Tower?",
                "It is 330 metres tall.",
                "And who built it?",
                "the Eiffel Tower",
            ),
            (
                "What does a heat pump do?",
                "It moves heat from outside into a house.",
                "How much power does it need?",
                "a heat pump",
            ),
            (
                "When did Finland join the EU?",
                "In 1995.",
                "What about Norway?",
                "joining the EU",
            ),
        ),
    },
    "zh": {
        "system": "用几个字说出下一个问题问的是什么。",
        "question": "问题：",
        "answer": "\n回答：",
        "next": "下一个问题：",
        "ask": "\n下一个问题问的是上面的什么？",
        "examples": (
            ("埃菲尔铁塔有多高？", "高 330 米。", "那是谁建的？", "埃菲尔铁塔"),
            ("热泵有什么用？", "把室外的热量搬进屋里。", "它耗多少电？", "热泵"),
            ("芬兰哪年加入欧盟？", "1995 年。", "挪威呢？", "加入欧盟"),
        ),
    },
}


class Origin(StrEnum):
    """Where the question that is searched for came from."""

    AS_ASKED = "as_asked"  # it stands by itself
    REWRITTEN = "rewritten"  # by the model
    CARRIED = "carried"  # the question that it follows, and it


@dataclass(frozen=True)
class SearchQuestion:
    """What is searched for.

    `refused` is what the model wrote where that could not be used; `seconds` what it took to write.
    """

    text: str
    origin: Origin = Origin.AS_ASKED
    refused: str = ""
    seconds: float = 0.0


def depends_on_chat(question: str, history: History) -> bool:
    """Whether `question` needs the conversation to be understood; without one, never."""
    if not any(m["role"] == "user" for m in history):
        return False
    han = has_han(question)
    refers, opens = (_REFERS_ZH, _OPENS_ZH) if han else (_REFERS, _OPENS)
    if refers.search(question) or opens.search(question):
        return True
    if not question.rstrip().endswith(("?", "？")):
        return False  # "thanks" is short as well
    if han:
        bare = re.sub(r"\W", "", _ASKS_ZH.sub("", question))
        names_nothing = len(bare) < _FEW_CHARACTERS and "你" not in question
        return names_nothing and not _DEFINES_ZH.search(question)
    return len(content_terms(question)) == 1 and not _DEFINES.match(question)


def request(
    question: str, history: History, *, count_tokens: CountTokens, budget: int
) -> list[dict] | None:
    """Messages that ask a model what `question` is about, in at most `budget` tokens.

    The newest exchanges that fit are in them; None when not even one does.
    """
    words = _WORDS["zh" if has_han(question) else "en"]
    exchanges = _exchanges(history)
    for first in range(max(0, len(exchanges) - MOST_EXCHANGES), len(exchanges)):
        messages = _messages(question, exchanges[first:], words)
        if count_tokens(messages) <= budget:
            return messages
    return None


def judge(reply: str, question: str, history: History) -> str | None:
    """The name in the model's reply, or None where it is not to be trusted.

    It is one line and short, names something that was said before, and that the question does not
    name itself.
    """
    lines = [line for line in reply.strip().splitlines() if line.strip()]
    name = lines[0].strip(_QUOTES) if len(lines) == 1 else ""
    if "?" in name or "？" in name or len(tokenize(name)) > MAX_TERMS:
        return None
    said = "\n".join(m["content"] for m in history)
    terms = content_terms(name)
    adds = [term for term in terms if not _holds(question, term)]
    return name if adds and all(_holds(said, term) for term in terms) else None


def complete(question: str, name: str) -> str:
    """`question` with `name` in place of the word that stands for it, or else before it."""
    if has_han(question):
        completed, count = _STANDS_FOR_ZH.subn(lambda _: name, question, count=1)
        return completed if count else f"{name}：{question}"

    def put(match: re.Match[str]) -> str:
        before = f"{match['before']} " if match["before"] else ""
        return f"{before}{name}'s" if match["own"] else f"{before}{name}"

    completed, count = _STANDS_FOR.subn(put, question, count=1)
    return completed if count else f"{name}: {question}"


def carry(question: str, history: History) -> str:
    """The question behind the one it follows, back to one that stands by itself.

    No further back than MOST_CARRIED: what a long row of "why?" began with is not its subject.
    Whole questions and not their terms alone: an embedder reads sentences.
    """
    asked = [m["content"].strip() for m in history if m["role"] == "user"][-MOST_CARRIED:]
    carried: list[str] = []
    while asked:
        carried.insert(0, asked.pop())
        if not depends_on_chat(carried[0], [{"role": "user", "content": q} for q in asked]):
            break
    return " ".join([*(earlier[-MAX_CARRIED:] for earlier in carried), question])


def _holds(text: str, term: str) -> bool:
    """Whether a term is in a text; of Chinese ones each is a piece of a word."""
    return term in text.casefold() if has_han(term) else term in tokenize(text)


def _exchanges(history: History) -> list[tuple[str, str]]:
    """Each question with its answer, oldest first."""
    return [
        (asked["content"], answered["content"])
        for asked, answered in pairwise(history)
        if (asked["role"], answered["role"]) == ("user", "assistant")
    ]


def _messages(question: str, exchanges: Sequence[tuple[str, str]], words: Any) -> list[dict]:
    messages = [{"role": "system", "content": [_trusted(words["system"])]}]
    for *said, name in words["examples"]:
        parts = _asking(said[-1], [said[:2]], words, _trusted)
        messages.append({"role": "user", "content": parts})
        messages.append({"role": "assistant", "content": [_trusted(name)]})
    parts = _asking(question, exchanges, words, _untrusted)
    return [*messages, {"role": "user", "content": parts}]


def _asking(
    question: str,
    exchanges: Sequence[Sequence[str]],
    words: Any,
    theirs: Callable[[str], dict],
) -> list[dict]:
    parts = []
    for asked, answered in exchanges:
        parts += [_trusted(words["question"]), theirs(asked)]
        parts += [_trusted(words["answer"]), theirs(answered[:MAX_ANSWER].strip()), _trusted("\n")]
    return [*parts, _trusted(words["next"]), theirs(question), _trusted(words["ask"])]


def _trusted(text: str) -> dict:
    return {"type": "text", "text": text, "trusted": True}


def _untrusted(text: str) -> dict:
    return {"type": "text", "text": text, "trusted": False}
