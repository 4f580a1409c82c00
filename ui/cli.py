"""The `glassbox` commands: an adapter from arguments and a terminal to the same code as the page.

Knows how to print and which exit code to give. Builds no part itself: `app.py` hands it a function
that opens them, so that a command opens only what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ui import cli_options
from ui.cli_files import files_to_add
from ui.cli_options import Options, ServeOptions
from ui.plain_text import json_text, one_line, printable
from ui.terminal import ProgressLine

if TYPE_CHECKING:
    from rag.collection import Entry
    from rag.embedding import Embedder
    from rag.records import StoredDocument
    from rag.retrieval_config import RetrievalConfig
    from rag.retriever import Retriever
    from rag.store import DocumentStore
    from ui.parts import Parts

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
ID = 12  # characters of an id that are shown; `remove` takes any beginning
OUR_PACKAGES = {"app", "generation", "rag", "ui"}


class CommandError(Exception):
    """A command cannot do what was asked; the message is one sentence for the person."""


class Application(Protocol):
    """What `app.py` opens, each part when it is first asked for."""

    def document_store(self) -> DocumentStore:
        """The store alone: neither model is loaded, so vectors cannot be added or searched."""

    def indexed_store(self) -> tuple[DocumentStore, Embedder]:
        """The store with the embedder that its vectors belong to."""

    def retriever(self) -> Retriever: ...

    def parts(self) -> Parts:
        """Everything, the language model too."""

    def move_vectors(self, to: str, *, abandon: bool) -> int:
        """Move the vectors to `sqlite` or `milvus:URI`; how many there are."""

    def serve(self, options: ServeOptions) -> None:
        """Serve the page until it is interrupted."""


OpenApplication = Callable[[Options, ProgressLine], Application]


def run(argv: Sequence[str], open_application: OpenApplication) -> int:
    """Run one command; its exit code. A failure that is stated is one sentence, not a traceback."""
    args = cli_options.parse(argv)
    progress = ProgressLine()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        application = open_application(cli_options.options_from(args), progress)
        return COMMANDS[args.command](args, application, progress)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `glassbox list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        if not is_stated(error):
            raise
        progress.close()
        return _fail(error)
    finally:
        progress.close()


def is_stated(error: Exception) -> bool:
    """True when the message was written for the person: one of our own errors, or the system's."""
    ours = type(error).__module__.split(".")[0] in OUR_PACKAGES
    return ours or isinstance(error, OSError)


def serve(args: argparse.Namespace, application: Application, progress: ProgressLine) -> int:
    try:
        options = cli_options.serve_options_from(args)
    except ValueError as error:
        return _fail(error, USAGE)
    application.serve(options)
    return OK


def add(args: argparse.Namespace, application: Application, progress: ProgressLine) -> int:
    from rag.collection import documents_in

    code = OK
    store, embedder = application.indexed_store()
    try:
        for path, shown in files_to_add([Path(p) for p in args.paths]):
            folder, _, name = shown.rpartition("/")
            try:
                with documents_in(path, name, folder) as found:
                    for entry in found.entries:
                        code = max(code, _add_entry(entry, store, embedder, progress))
            except Exception as error:
                code = _not_added(error, shown, progress)
    except KeyboardInterrupt:
        progress.close()
        print("\nStopped. What is listed above was added and stays.", end="", file=sys.stderr)
        raise
    return code


def _add_entry(
    entry: Entry, store: DocumentStore, embedder: Embedder, progress: ProgressLine
) -> int:
    """Add one document and say what came of it; one that cannot be read does not stop others."""
    from rag.ingest import ingest

    try:
        with entry.open() as path:
            told = _named(progress, entry.name)
            result = ingest(store, embedder, path, entry.name, told, folder=entry.folder)
    except Exception as error:
        return _not_added(error, entry.shown, progress)
    progress.close()
    stored = result.document
    print(f"{result.status}  {stored.id[:ID]}  {_passages(stored)}  {one_line(stored.name)}")
    for warning in stored.warnings:
        print(f"  {one_line(warning)}")
    return OK


def _passages(document: StoredDocument) -> str:
    return f"{document.passages} {'passage' if document.passages == 1 else 'passages'}"


def _not_added(error: Exception, shown: str, progress: ProgressLine) -> int:
    if not is_stated(error):
        raise error
    progress.close()
    return _fail(CommandError(f"{shown} was not added: {_sentence(error)}"))


def list_documents(
    args: argparse.Namespace, application: Application, progress: ProgressLine
) -> int:
    documents = application.document_store().documents()
    for document in documents:
        added = document.added_at[:16].replace("T", " ")
        name = one_line(document.name)
        print(f"{document.id[:ID]}  {_passages(document):>14}  {added}  {name}")
    if not documents:
        print("There are no documents yet: glassbox add PATH")
    return OK


def remove(args: argparse.Namespace, application: Application, progress: ProgressLine) -> int:
    store = application.document_store()
    found = [d for d in store.documents() if d.id.startswith(args.id)]
    if len(found) != 1:
        problem = "No document has" if not found else f"{len(found)} documents have"
        raise CommandError(f"{problem} an id that begins with {one_line(args.id)}.")
    store.remove(found[0].id)
    print(f"removed  {found[0].id[:ID]}  {one_line(found[0].name)}")
    return OK


def _retrieval(args: argparse.Namespace, application: Application) -> RetrievalConfig:
    """How and where to search. Raises ValueError for what makes no sense, or is not there."""
    wanted = getattr(args, "document_ids", None)
    config = cli_options.retrieval_options(args, wanted)  # before anything is opened
    if wanted is None:
        return config
    documents = application.document_store().documents()
    ids = [d.id for name in wanted for d in _named_so(name, documents)]
    return cli_options.retrieval_options(args, ids)


def _named_so(wanted: str, documents: Sequence[StoredDocument]) -> list[StoredDocument]:
    """The documents of this name, or else the one whose id begins so."""
    named = [d for d in documents if d.name == wanted]
    found = named or [d for d in documents if d.id.startswith(wanted)]
    if not found or (len(found) > 1 and not named):
        problem = "No document has" if not found else f"{len(found)} documents have"
        raise CommandError(f"{problem} the name, or an id that begins with, {one_line(wanted)}.")
    return found


def read_chat(path: Path) -> list[dict[str, str]]:
    """The conversation in a JSON file. Raises CommandError."""
    try:
        messages = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path.name} is not JSON: {error}") from None
    if not isinstance(messages, list) or not all(
        isinstance(m, dict)
        and m.get("role") in ("user", "assistant")
        and isinstance(m.get("content"), str)
        for m in messages
    ):
        raise CommandError(
            f"{path.name} must be a list of messages, each with a role, user or assistant, "
            "and content that is text."
        )
    return [{"role": m["role"], "content": m["content"]} for m in messages]


def search(args: argparse.Namespace, application: Application, progress: ProgressLine) -> int:
    from ui.cli_passages import print_passages, print_scope
    from ui.records import retrieval_record
    from ui.searching import retrieve

    try:
        config = _retrieval(args, application)
    except ValueError as error:
        return _fail(error, USAGE)
    retrieval = retrieve(application.retriever(), args.query, config)
    progress.close()
    if args.json:
        print(json_text(retrieval_record(retrieval)))
    elif retrieval.relevant:
        print_passages(retrieval.passages)
        print_scope(len(retrieval.passages), retrieval)
    else:
        print("Nothing in the documents is relevant enough to answer from. The closest:")
        print_passages(retrieval.rejected)
    return OK


def ask(args: argparse.Namespace, application: Application, progress: ProgressLine) -> int:
    try:
        config, method = cli_options.decoding_options(args)
        if args.compare and config.num_beams > 1:
            raise ValueError("--compare follows one text on each side: leave out --beams.")
        if method.context_alpha and args.compare:
            raise ValueError(
                "--compare changes nothing but the context: leave out --context-alpha."
            )
        if method.context_alpha and args.without_retrieval:
            raise ValueError("--context-alpha needs passages: leave out --without-retrieval.")
        if args.chat and args.compare:
            raise ValueError("--compare answers one question by itself: leave out --chat.")
        history = read_chat(Path(args.chat)) if args.chat else []
        retrieval = _retrieval(args, application)
    except ValueError as error:
        return _fail(error, USAGE)
    parts = application.parts()
    progress.close()
    if parts.notice:
        print(printable(parts.notice), file=sys.stderr)
    from ui import cli_answers

    language = getattr(args, "language", None) or language_of(args.question)
    if args.compare:
        cli_answers.compare(
            parts,
            args.question,
            config,
            method,
            retrieval=retrieval,
            language=language,
            as_json=args.json,
        )
    else:
        cli_answers.ask(
            parts,
            args.question,
            config,
            method,
            retrieval=None if args.without_retrieval else retrieval,
            language=language,
            as_json=args.json,
            history=history,
        )
    return OK


def move_vectors(args: argparse.Namespace, application: Application, progress: ProgressLine) -> int:
    count = application.move_vectors(args.to, abandon=args.abandon)
    progress.close()
    if args.abandon:
        print("The next start makes the vectors of all passages again, from their text.")
    else:
        print(f"moved  {count} vectors")
    return OK


def language_of(question: str) -> str:
    """The language to give instructions in: Chinese for a question with Chinese characters."""
    return "zh" if any("\u4e00" <= character <= "\u9fff" for character in question) else "en"


def _named(progress: ProgressLine, name: str) -> Callable[[str, int, int], None]:
    """One label a file, and another while its text is recognised, which takes far longer."""

    def told(step: str, done: int, total: int) -> None:
        doing = "Recognising the text of" if step == "Recognising text" else "Adding"
        progress(f"{doing} {name}", done, total)

    return told


def _fail(error: Exception, code: int = FAILED) -> int:
    print(f"glassbox: {one_line(_sentence(error))}", file=sys.stderr)
    return code


def _sentence(error: Exception) -> str:
    """What to tell the person: for the system's errors without the number and the brackets."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


COMMANDS: dict[str, Callable[[argparse.Namespace, Application, ProgressLine], int]] = {
    "serve": serve,
    "add": add,
    "list": list_documents,
    "remove": remove,
    "search": search,
    "ask": ask,
    "move-vectors": move_vectors,
}
