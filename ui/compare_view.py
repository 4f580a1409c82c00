"""Two answers as escaped HTML: the receipt of what is equal, the columns, the passages behind one.

Pure functions from `ui.comparing.ComparisonUpdate` to strings. Knows nothing of Gradio or models.
"""

from __future__ import annotations

from html import escape

from generation.comparison import Side
from generation.config import GenerationConfig
from generation.step import FinishReason
from generation.strategies import Method, strategy_name
from rag.citations import CheckedAnswer, check_citations, without_unsupported
from ui import markdown
from ui.comparing import SIDES, ComparisonUpdate, SideRun
from ui.decoding_text import sampling_facts, strategy_text
from ui.i18n import h, t
from ui.passage_view import passage_cards
from ui.prompt_difference import difference_html
from ui.prompt_view import prompt_view
from ui.search_view import scope
from ui.shift_view import Shift
from ui.token_view import divergence_mark, mean_logprob, token_panel
from ui.why_view import why_these

# Private-use characters that stand for HTML until the Markdown around them has been rendered.
BAR, BOLD, END_BOLD = "\ue010", "\ue011", "\ue012"


def receipt_html(update: ComparisonUpdate, language: str) -> str:
    """What is the same on both sides, and the one thing that is not, which opens to be seen."""
    if not update.runs:
        return ""
    same = (
        t(language, "compare.same_weights"),
        t(
            language,
            "compare.same_decoder",
            decoder=decoder_text(update.config, update.method, language),
        ),
        t(language, "compare.same_seed", seed=update.config.seed),
    )
    chips = "".join(f'<li class="chip">= {escape(text)}</li>' for text in same)
    prompts = {side: update.runs[side].prompt for side in SIDES}
    if not update.differing:
        equal = h(language, "compare.same_prompt")
        return f'<ul class="receipt">{chips}<li class="chip">= {equal}</li></ul>'
    differ = h(language, "compare.differ", count=f"{update.differing:,}")
    return (
        f'<div class="receipt"><ul>{chips}</ul><details class="difference">'
        f'<summary class="chip">≠ {differ}</summary>'
        f"{difference_html(prompts['with'], prompts['without'], language)}</details></div>"
    )


def decoder_text(config: GenerationConfig, method: Method, language: str) -> str:
    """The decoding strategy and those of the sampler's numbers that act."""
    name = strategy_name(config, method)
    facts = sampling_facts(config)
    if name != "sampling":
        facts.insert(0, strategy_text(name, language))
    return " · ".join(facts)


def columns_html(update: ComparisonUpdate, language: str) -> str:
    """Both answers as far as they are written; when done, with tokens and prompts to open."""
    if not update.runs:
        return ""
    sides = "".join(_side_html(update, side, language) for side in SIDES)
    busy = "false" if update.stage == "done" else "true"
    return f'<div class="columns" aria-busy="{busy}">{sides}</div>'


def shifts_of(update: ComparisonUpdate) -> list[Shift]:
    """The answer with retrieval, each token with its log-probability under both prompts."""
    run = update.runs.get("with")
    pairs = zip(run.steps if run else (), update.rescored, strict=False)
    return [Shift(step.text, step.logprob, rescored.logprob) for step, rescored in pairs]


def passages_html(update: ComparisonUpdate, language: str) -> str:
    """The passages that one side was given; when done, those that nothing points at stand back."""
    run = update.runs.get("with")
    if run is None or update.retrieval is None or not run.prompt.used:
        return ""
    done = update.stage == "done"
    checked, found = _checked(run, run.text), update.retrieval
    shown = passage_cards(run.prompt.used, checked.text, checked.supports, found, language, done)
    cards = [f'<div id="compare-passage-{n}">{card}</div>' for n, card in enumerate(shown, 1)]
    title = h(language, "compare.passages_title", count=len(cards))
    read = scope(update.retrieval, len(cards), update.question, language)
    why = why_these(update.retrieval, language, run.prompt) if done else ""
    return (
        f'<h3 class="label">{title}</h3>{read}'
        f'<div class="compare-passages">{"".join(cards)}</div>{why}'
    )


def status_text(update: ComparisonUpdate, language: str) -> str:
    """One sentence on what is going on, what was found, or what went wrong."""
    if update.problem is not None:
        return t(language, update.problem.key, **update.problem.values)
    if update.stage == "retrieving":
        return t(language, "chat.retrieving")
    if update.stage == "waiting" and update.ahead:
        return t(language, "chat.waiting", ahead=update.ahead)
    if update.retrieval is not None and not update.retrieval.relevant:
        return t(language, "compare.nothing_relevant")
    return (
        divergence_text(update, language, "compare.part_at_red") if update.stage == "done" else ""
    )


def divergence_text(update: ComparisonUpdate, language: str, key: str = "compare.part_at") -> str:
    """Where the answers part, in the words of `key`."""
    if update.divergence is None:
        return t(language, "compare.equal")
    return t(language, key, number=update.divergence + 1)


def run_facts(run: SideRun, language: str) -> list[str]:
    """How a side ended, and its measured figures, each a short text."""
    facts = [t(language, f"finish.{run.finish_reason}")] if run.finish_reason else []
    facts.append(t(language, "chat.tokens", count=len(run.steps)))
    mean = mean_logprob(run.steps)
    if mean is not None:
        facts.append(t(language, "compare.mean_logprob", value=f"{mean:.2f}".replace("-", "−")))
    if run.tokens_per_second:
        facts.append(t(language, "chat.rate", rate=f"{run.tokens_per_second:.1f}"))
    return facts


def answer_html(run: SideRun, divergence: int | None, language: str) -> str:
    """The answer with citations, and the red bar before what the first differing token wrote."""
    text = _without_marks(run.text)
    for offset, mark in reversed(_marks(run, divergence)):
        text = text[:offset] + mark + text[offset:]
    checked = _checked(run, text)
    count, writing = len(run.prompt.used), run.finish_reason is None
    html = markdown.render(checked.text, _cite, count, language, checked.supports, cursor=writing)
    html = html.replace(BAR, divergence_mark(language))
    return html.replace(BOLD, "<strong>").replace(END_BOLD, "</strong>")


def _marks(run: SideRun, divergence: int | None) -> list[tuple[int, str]]:
    """Where in the text which marks stand, in order. Bold only where it cannot cut Markdown."""
    if divergence is None or divergence >= len(run.pieces):
        return []
    piece = run.pieces[divergence]
    word = piece.strip()
    start = sum(map(len, run.pieces[:divergence])) + len(piece) - len(piece.lstrip())
    if not word.isalnum():
        return [(start, BAR)]
    return [(start, BAR + BOLD), (start + len(word), END_BOLD)]


def _side_html(update: ComparisonUpdate, side: Side, language: str) -> str:
    run = update.runs[side]
    sizes = [t(language, "compare.tokens_in", count=f"{run.prompt_tokens:,}")]
    if side == "with":
        sizes.insert(0, t(language, "compare.passages", count=len(run.prompt.used)))
    name = h(language, f"compare.{side}")
    return (
        f'<section class="card side {side}" data-side="{side}" aria-label="{name}">'
        f"<h3>{name} <small>{escape(' · '.join(sizes))}</small></h3>"
        f'<div class="answer" dir="auto">{answer_html(run, update.divergence, language)}</div>'
        f"{_ending(run, language)}{_inside(update, run, language)}</section>"
    )


def _ending(run: SideRun, language: str) -> str:
    if run.finish_reason is None and not run.steps:
        facts = [t(language, "chat.reading", tokens=f"{run.prompt_tokens:,}")]
    elif run.finish_reason is None:
        facts = [t(language, "chat.writing", count=len(run.steps))]
    else:
        facts = run_facts(run, language)
        ended = run.finish_reason in (FinishReason.EOS, FinishReason.STOP_STRING)
        facts[0] = ("✓ " if ended else "■ ") + facts[0]
    return f'<p class="ending">{"".join(f"<span>{escape(fact)}</span>" for fact in facts)}</p>'


def _inside(update: ComparisonUpdate, run: SideRun, language: str) -> str:
    """Tokens and prompt to open. Only when nothing changes any more: redrawing would close them."""
    if update.stage != "done":
        return ""
    tokens = token_panel(run.steps, language, update.divergence)
    return (
        f"<details><summary>{h(language, 'tokens.show')}</summary>{tokens}</details>"
        f"{prompt_view(run.prompt, language)}"
    )


def _checked(run: SideRun, text: str) -> CheckedAnswer:
    """Without citations that nothing supports; once complete, with what supports its sentences."""
    texts = [passage.text for passage in run.prompt.used]
    if run.finish_reason is None:
        return CheckedAnswer(without_unsupported(text, texts), ())
    return check_citations(text, texts)


def _cite(number: int, by_model: bool) -> str:
    kind = "cite" if by_model else "cite found"
    return f'<a class="{kind}" href="#compare-passage-{number}">{number}</a>'


def _without_marks(text: str) -> str:
    return "".join(
        "\ufffd" if character in (BAR, BOLD, END_BOLD) else character for character in text
    )
