"""The options of the command lines, made from the fields of the records that hold them.

What `GenerationConfig` and `Method` have, the command line has, under the same name, with the same
checks and with the comments beside the fields as help. So nothing can drift, and an option added
there is an option here. Knows no model.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn, get_type_hints

from generation.config import GenerationConfig
from generation.method import Method

PROGRAM = "python -m generation"
# What the name of a strategy sets, unless the option is given too.
STRATEGIES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sample": {"temperature": 1.0},
    "beam": {"num_beams": 4},
    "contrastive": {"penalty_alpha": 0.6},
    "context-aware": {"context_alpha": 0.5},
    "one-shot": {"max_new_tokens": 32},
    "jacobi": {"max_new_tokens": 32},
    "template": {},
}
PARALLEL = ("one-shot", "jacobi")


class UsageError(ValueError):
    """Options that make no sense together, said in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to write, and how."""

    prompt: str
    config: GenerationConfig
    method: Method
    strategy: str | None = None  # None: whatever the options amount to
    context: str = ""
    system: str = ""
    template: str = ""
    raw: bool = False
    model: str = "auto"
    device: str = "auto"
    precision: str = "auto"
    as_json: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence and the exit status 2, without the long list of options."""
        self.exit(2, f"{self.prog}: {message}\n")


def parse(arguments: Sequence[str]) -> Request:
    """The request that the arguments make. Exits with 2 on a usage error, with 0 on --help."""
    parser = _make_parser()
    options = vars(parser.parse_args(arguments))
    try:
        return _request(options)
    except (ValueError, OSError) as error:
        parser.error(str(error))


def option_names(record: type) -> dict[str, str]:
    """Field name to the name of its option: max_new_tokens to --max-new-tokens."""
    return {field.name: "--" + field.name.replace("_", "-") for field in fields(record)}


def _make_parser() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        description="Write a text one token at a time and show what each token was chosen from.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument(
        "prompt", help="the question, or with --raw the text to continue; - is stdin"
    )
    parser.add_argument("--strategy", choices=STRATEGIES, help="sets the options it is known by")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--chat", action="store_false", dest="raw", help="as a chat message: default")
    form.add_argument("--raw", action="store_true", help="the prompt is continued as it is")
    parser.add_argument("--system", metavar="TEXT", help="a system message")
    parser.add_argument("--context", metavar="TEXT", help="what is read before the prompt")
    parser.add_argument("--template", metavar="TEXT", help='a form to fill: "Name: {{name}}"')
    parser.add_argument("--model", help="a catalogue name, hub id, folder or .gguf (default: auto)")
    parser.add_argument("--device", help="auto, cpu, cuda, cuda:N or mps")
    parser.add_argument("--precision", help="auto, fp32 or bf16")
    parser.add_argument("--json", action="store_true", dest="as_json", help="one object a line")
    for record in (GenerationConfig, Method):
        add_fields(parser.add_argument_group(record.__name__), record)
    return parser


def add_fields(
    group: argparse._ArgumentGroup, record: type, aliases: Mapping[str, str] | None = None
) -> None:
    """An option for every field of `record`; `aliases` gives a field a second name.

    The parser must suppress defaults: what was not given is the record's to fill in.
    """
    types, helps = get_type_hints(record), _comments(record)
    for name, option in option_names(record).items():
        kind = types[name]
        settings: dict[str, Any] = {"help": helps.get(name, "").replace("%", "%%")}
        if kind is bool:
            settings["action"] = argparse.BooleanOptionalAction
        elif kind in (int, float):
            settings |= {"type": _number, "metavar": "N"}
        elif kind == bool | str:
            settings |= {"type": _word, "metavar": "WORD"}
        elif kind is str:
            settings["metavar"] = "TEXT"
        elif kind == tuple[str, ...]:
            settings |= {"action": "append", "metavar": "TEXT"}
        elif kind == tuple[tuple[int, float], ...]:
            settings |= {"action": "append", "type": _pair, "metavar": "ID=N"}
        else:
            raise TypeError(f"{record.__name__}.{name} has a type that has no option yet: {kind}")
        short = [aliases[name]] if aliases and name in aliases else []
        group.add_argument(option, *short, **settings)


def _comments(record: type) -> dict[str, str]:
    """What the source says beside each field."""
    found = re.findall(r"^    (\w+): [^#\n]*#\s*(.+)$", inspect.getsource(record), re.MULTILINE)
    return dict(found)


def _number(text: str) -> Any:
    """A number, or the text itself: the record that gets it says what it should have been."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _word(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)


def _pair(text: str) -> tuple[Any, Any]:
    token_id, _, value = text.partition("=")
    return _number(token_id), _number(value)


def _request(options: dict[str, Any]) -> Request:
    strategy = options.get("strategy")
    if strategy is None and options.get("template"):
        strategy = "template"
    preset = STRATEGIES[strategy or "greedy"] | options
    config = GenerationConfig(**given_fields(GenerationConfig, preset))
    method = Method(**given_fields(Method, preset))
    method.check_with(config)
    prompt = sys.stdin.read() if options["prompt"] == "-" else options["prompt"]
    made = {"prompt": prompt, "config": config, "method": method, "strategy": strategy}
    request = Request(**given_fields(Request, options) | made)
    _check(request, options)
    return request


def given_fields(record: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that are fields of `record`."""
    return {name: options[name] for name in option_names(record) if name in options}


def _check(request: Request, options: dict[str, Any]) -> None:
    """Raise UsageError when an option would have no effect, or another than its strategy's."""
    config, method, strategy = request.config, request.method, request.strategy
    kept = {
        "greedy": config.strategy == "greedy"
        and not method.penalty_alpha
        and not method.context_alpha,
        "sample": config.strategy == "sampling" and not method.context_alpha,
        "beam": config.num_beams > 1,
        "contrastive": method.penalty_alpha > 0,
        "context-aware": method.context_alpha > 0,
        "template": method.is_plain and config.num_beams == 1,
    }
    if not kept.get(strategy or "", True):
        raise UsageError(f"--strategy {strategy} does not go with the other options given")
    if method.context_alpha and not request.context:
        raise UsageError("context-aware decoding compares with and without: give --context")
    if (strategy == "template") != bool(request.template):
        raise UsageError("--strategy template and --template belong together")
    if request.raw and request.system:
        raise UsageError("--system is a chat message, so it does not go with --raw")
    if strategy in PARALLEL:
        names = option_names(GenerationConfig) | option_names(Method)
        unused = [names[n] for n in names if n in options and n != "max_new_tokens"]
        if unused:
            raise UsageError(f"--strategy {strategy} knows no {unused[0]}, only --max-new-tokens")
