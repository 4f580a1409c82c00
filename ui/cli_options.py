"""The options of the command line, parsed into small frozen dataclasses.

Imports nothing heavy, so that `glassbox --help` answers at once. The options of decoding are the
fields of `GenerationConfig` and `Method`, which fill in and check what was not given; those of
retrieval are the fields of `RetrievalConfig`.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generation.command_options import add_fields, given_fields
from generation.config import GenerationConfig
from generation.method import Method
from rag.retrieval_config import FollowUp, RetrievalConfig

COMMANDS = ("serve", "add", "list", "remove", "search", "ask", "move-vectors")
LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Options:
    """Which parts to build, and where the data is."""

    data: Path
    model: str = "auto"
    embedder: str = "e5-small"
    device: str = "auto"
    precision: str = "auto"
    language: str | None = None
    reranker: Path | None = None
    store: str | None = field(default=None, repr=False)  # its URI may name a user
    milvus_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ServeOptions:
    """How the page is served. `user` and `password` are both given or both None."""

    host: str = "127.0.0.1"
    port: int = 7860
    open_browser: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.user is None) != (self.password is None):
            raise ValueError("--user and --password belong together.")
        if self.user is None and not is_loopback(self.host):
            raise ValueError(
                f"{self.host} can be reached from other machines: give --user and --password, "
                "or keep the default --host 127.0.0.1."
            )

    @property
    def auth(self) -> tuple[str, str] | None:
        return (self.user, self.password) if self.user and self.password else None


def is_loopback(host: str) -> bool:
    """True when only this machine can connect to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def default_data_dir() -> Path:
    """`$GLASSBOX_HOME/data`, or the user's data folder."""
    home = os.environ.get("GLASSBOX_HOME")
    if home:
        return Path(home) / "data"
    from platformdirs import user_data_path

    return user_data_path("glassbox")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parsed arguments; without a command, `serve`. Exits with 2 on a usage error, 0 on --help."""
    argv = list(argv)
    if not {"-h", "--help", *COMMANDS} & set(argv):
        argv.insert(0, "serve")
    return build_parser().parse_args(argv)


def options_from(args: argparse.Namespace) -> Options:
    given = {name: getattr(args, name) for name in _PART_OPTIONS if hasattr(args, name)}
    data = getattr(args, "data", None) or default_data_dir()
    token = os.environ.get("MILVUS_TOKEN")
    return Options(data=Path(data).expanduser().absolute(), milvus_token=token, **given)


def serve_options_from(args: argparse.Namespace) -> ServeOptions:
    """Raises ValueError, with the sentence to print, for a host that needs a password."""
    return ServeOptions(args.host, args.port, args.open, args.user, args.password)


def decoding_options(args: argparse.Namespace) -> tuple[GenerationConfig, Method]:
    """How to write the answer. Raises ValueError, which names the option that makes no sense."""
    given = vars(args)
    config = GenerationConfig(**given_fields(GenerationConfig, given))
    method = Method(**given_fields(Method, given))
    method.check_with(config)
    return config, method


def retrieval_options(
    args: argparse.Namespace, document_ids: Sequence[str] | None
) -> RetrievalConfig:
    """How to search, in these documents. Raises ValueError, which names what makes no sense."""
    given = given_fields(RetrievalConfig, vars(args))
    ids = None if document_ids is None else tuple(document_ids)
    return RetrievalConfig(**given | {"document_ids": ids})


_PART_OPTIONS = ("model", "embedder", "reranker", "device", "precision", "language", "store")
ALIASES = {"num_beams": "--beams"}


def build_parser() -> argparse.ArgumentParser:
    shared = _shared_options()
    parser = argparse.ArgumentParser(
        prog="glassbox",
        description="Chat with your documents and look inside while the answer is written. "
        "Without a command, serves the page.",
        parents=[shared],
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=help, description=help, parents=[shared], allow_abbrev=False
        )

    serve = command("serve", "Serve the page (the default).")
    serve.add_argument("--host", default="127.0.0.1", help="address to bind (default: %(default)s)")
    serve.add_argument("--port", type=_port, default=7860, help="default: %(default)s; 0 picks one")
    serve.add_argument(
        "--open", action=argparse.BooleanOptionalAction, default=False, help="open a browser"
    )
    serve.add_argument(
        "--user", default=os.environ.get("GLASSBOX_USER"), help="name to sign in with"
    )
    serve.add_argument(
        "--password",
        default=os.environ.get("GLASSBOX_PASSWORD"),
        help="its password; better given as the environment variable GLASSBOX_PASSWORD",
    )

    add = command("add", "Add files, folders or zips of documents.")
    add.add_argument("paths", nargs="+", metavar="PATH")

    command("list", "List the documents.")

    remove = command("remove", "Remove a document.")
    remove.add_argument("id", metavar="ID", help="its id, or a beginning of it that is unique")

    search = command("search", "Show the passages that retrieval finds.")
    search.add_argument("query")
    _retrieval_options(search)

    ask = command("ask", "Answer a question.")
    ask.add_argument("question")
    _retrieval_options(ask)
    ask.add_argument(
        "--chat",
        metavar="FILE",
        help='the conversation so far, as JSON: [{"role": "user", "content": "..."}, ...]',
    )
    ask.add_argument(
        "--follow-up",
        choices=[*FollowUp],
        default=argparse.SUPPRESS,
        help="how a question that follows a chat is completed for the search (default: carry)",
    )
    ask.add_argument("--without-retrieval", action="store_true", help="let the model answer alone")
    ask.add_argument("--compare", action="store_true", help="answer with and without retrieval")
    _decoding_options(ask)

    move = command("move-vectors", "Move the vectors of all passages to another place.")
    move.add_argument("to", metavar="WHERE", help="sqlite, milvus:FILE.db or milvus:URI")
    move.add_argument(
        "--abandon",
        action="store_true",
        help="fetch nothing from where they are, for when that is gone for good: they are made "
        "again from the passages' text at the next start",
    )
    return parser


def _shared_options() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = shared.add_argument_group("options of every command")
    group.add_argument("--model", help="catalogue name, folder or .gguf file (default: auto)")
    group.add_argument("--embedder", help="e5-small, minilm or a folder (default: e5-small)")
    group.add_argument(
        "--reranker",
        type=Path,
        metavar="FOLDER",
        help="a cross-encoder that puts the best passages in order (default: none)",
    )
    group.add_argument("--device", help="auto, cpu, cuda or mps (default: auto)")
    group.add_argument("--precision", help="auto, fp32 or bf16 (default: auto)")
    group.add_argument("--data", metavar="DIR", help="where documents are kept")
    group.add_argument(
        "--store",
        metavar="WHERE",
        help="where vectors are kept: sqlite, milvus:FILE.db or milvus:http://HOST:19530, whose "
        "key is read from the environment variable MILVUS_TOKEN (default: where they are)",
    )
    group.add_argument("--language", choices=LANGUAGES, help="language of the instructions")
    return shared


def _retrieval_options(parser: argparse.ArgumentParser) -> None:
    default = RetrievalConfig()
    group = parser.add_argument_group("retrieval", argument_default=argparse.SUPPRESS)
    group.add_argument(
        "-k",
        "--passages",
        type=_positive,
        metavar="N",
        help=f"at most so many (default: {default.passages})",
    )
    group.add_argument(
        "--document",
        dest="document_ids",
        action="append",
        metavar="ID",
        help="look only in this one: its id, a beginning of it, or its name; may be repeated",
    )
    group.add_argument(
        "--diversity",
        type=float,
        metavar="N",
        help="0 takes the most relevant, however alike; up to 1 prefers others (default: 0)",
    )
    group.add_argument(
        "--neighbours",
        type=int,
        metavar="N",
        help="so many passages before and after each come along (default: 0)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _decoding_options(parser: argparse.ArgumentParser) -> None:
    for title, record in (("decoding", GenerationConfig), ("method", Method)):
        group = parser.add_argument_group(title, argument_default=argparse.SUPPRESS)
        add_fields(group, record, ALIASES)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not a port (0 to 65535)")
    return value
