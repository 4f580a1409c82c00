"""The commands, over hand-made parts: what they open, what they print, how they exit."""

import dataclasses
import json
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from generation.config import GenerationConfig
from generation.method import Method
from rag.store import DocumentStore
from tests import ui_fakes
from tests.fakes import FakeEmbedder
from ui import cli, cli_options
from ui.cli_files import files_to_add

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class FakeStore:
    entries: list = field(default_factory=list)

    def documents(self):
        return list(self.entries)

    def remove(self, document_id):
        self.entries = [entry for entry in self.entries if entry.id != document_id]


def stored(id_, name):
    return SimpleNamespace(id=id_, name=name, passages=3, added_at="2026-01-02T03:04:05+00:00")


@dataclass
class FakeApplication:
    """Opens only what a test gave it; anything else fails the test."""

    store: FakeStore = field(default_factory=FakeStore)
    retrieval: object = None
    served: list = field(default_factory=list)
    asked: dict = field(default_factory=dict)

    def document_store(self):
        return self.store

    def indexed_store(self):
        raise AssertionError("the embedder was opened")

    def parts(self):
        raise AssertionError("the language model was opened")

    def retriever(self):
        def retrieve(query, **options):
            self.asked = options
            return self.retrieval

        return SimpleNamespace(retrieve=retrieve)

    def serve(self, options):
        self.served.append(options)


def run(application, *argv):
    return cli.run(argv, lambda options, progress: application)


def passage(document="a.pdf", text="Some text."):
    return ui_fakes.passage(1, document=document, page=2, start=5, end=15, text=text)


def test_list_opens_neither_model(capsys):
    assert run(FakeApplication(FakeStore([stored("ab12", "lease.pdf")])), "list") == 0
    assert "ab12" in (out := capsys.readouterr().out)
    assert "lease.pdf" in out


def test_a_document_is_removed_by_the_beginning_of_its_id(capsys):
    application = FakeApplication(FakeStore([stored("ab12", "x.md"), stored("cd34", "y.md")]))
    assert run(application, "remove", "ab") == 0
    assert [entry.id for entry in application.store.entries] == ["cd34"]


@pytest.mark.parametrize("wanted", ["zz", "a"])
def test_an_unknown_or_ambiguous_id_is_refused_in_one_sentence(wanted, capsys):
    application = FakeApplication(FakeStore([stored("ab12", "x.md"), stored("ac34", "y.md")]))
    assert run(application, "remove", wanted) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert len(application.store.entries) == 2


def test_search_opens_no_language_model_and_prints_json(capsys):
    found = ui_fakes.retrieval(passage())
    assert run(FakeApplication(retrieval=found), "search", "question", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    (only,) = record["passages"]
    wanted = {"document": "a.pdf", "page": 2, "start": 5, "end": 15, "text": "Some text."}
    assert only | wanted == only
    assert (only["probability"], only["dense_rank"], only["dropped"]) == (0.94, 1, None)
    assert (record["considered"], record["threshold"]) == (9, 0.5)


def test_what_is_not_certain_is_never_printed_as_100_percent(capsys):
    found = ui_fakes.retrieval(dataclasses.replace(passage(), probability=0.99999))
    run(FakeApplication(retrieval=found), "search", "question")
    assert "(99.9 %)" in capsys.readouterr().out


def test_one_passage_is_not_called_passages(capsys):
    one, twelve = stored("ab12", "x.md"), stored("cd34", "y.md")
    one.passages, twelve.passages = 1, 12
    run(FakeApplication(FakeStore([one, twelve])), "list")
    first, second = capsys.readouterr().out.splitlines()
    assert "1 passage  " in first
    assert "12 passages  " in second


def test_search_says_when_nothing_is_relevant(capsys):
    found = ui_fakes.retrieval(passage(), relevant=False)
    assert run(FakeApplication(retrieval=found), "search", "pizza?") == 0
    assert "Nothing in the documents is relevant" in capsys.readouterr().out


@pytest.mark.parametrize("hostile", ["a\x1b[2Jb.md", "invoice\u202efdp.exe", "x\r\ny.md", "\ud83d"])
def test_a_hostile_file_name_reaches_the_terminal_harmless(hostile, capsys):
    found = ui_fakes.retrieval(passage(hostile, hostile))
    run(FakeApplication(FakeStore([stored("ab12", hostile)])), "list")
    run(FakeApplication(retrieval=found), "search", "q")
    run(FakeApplication(retrieval=found), "search", "q", "--json")
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\u202e\r\ud83d")


def test_no_command_serves_on_this_machine_only():
    application = FakeApplication()
    assert run(application) == 0
    assert application.served == [cli_options.ServeOptions()]
    assert application.served[0].host == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_serving_others_needs_a_password(host, capsys, monkeypatch):
    monkeypatch.delenv("GLASSBOX_USER", raising=False)
    monkeypatch.delenv("GLASSBOX_PASSWORD", raising=False)
    application = FakeApplication()
    assert run(application, "serve", "--host", host) == 2
    assert "--password" in capsys.readouterr().err
    assert run(application, "serve", "--host", host, "--user", "me", "--password", "x") == 0
    assert application.served[0].auth == ("me", "x")


@pytest.mark.parametrize("given", [["--user", "me"], ["--password", "x"]])
def test_a_user_without_password_is_refused(given):
    assert run(FakeApplication(), "serve", *given) == 2


def test_a_password_is_not_printed_with_the_options():
    assert "secret" not in repr(cli_options.ServeOptions(user="me", password="secret"))


@pytest.mark.parametrize(
    "argv", [["unknown"], ["search"], ["search", "q", "-k", "0"], ["serve", "--port", "70000"]]
)
def test_a_usage_error_exits_with_2(argv):
    with pytest.raises(SystemExit) as exit_:
        run(FakeApplication(), *argv)
    assert exit_.value.code == 2


def test_impossible_decoding_options_are_a_usage_error_that_names_them(capsys):
    assert run(FakeApplication(), "ask", "q", "--temperature", "-1") == 2
    assert "temperature" in capsys.readouterr().err


def test_ctrl_c_exits_with_130():
    def interrupted(options, progress):
        raise KeyboardInterrupt

    assert cli.run(["list"], interrupted) == 130


def test_an_error_of_the_system_is_a_sentence_and_a_bug_is_a_traceback(capsys):
    def fails_with(error):
        def open_application(options, progress):
            raise error

        return open_application

    assert cli.run(["list"], fails_with(OSError("disk full"))) == 1
    assert capsys.readouterr().err == "glassbox: disk full\n"
    with pytest.raises(ZeroDivisionError):
        cli.run(["list"], fails_with(ZeroDivisionError("bug")))


def test_options_may_stand_before_or_after_the_command(tmp_path):
    for argv in (["--model", "m", "list"], ["list", "--model", "m"]):
        options = cli_options.options_from(cli_options.parse(argv))
        assert options.model == "m"
        assert options.device == "auto"


def test_data_is_kept_below_glassbox_home_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSBOX_HOME", str(tmp_path))
    assert cli_options.options_from(cli_options.parse(["list"])).data == tmp_path / "data"
    given = cli_options.parse(["list", "--data", str(tmp_path / "x")])
    assert cli_options.options_from(given).data == tmp_path / "x"


def test_decoding_options_that_were_not_given_are_left_to_the_decoder():
    args = cli_options.parse(["ask", "q", "--top-p", "0.9", "--stop", "A", "--stop", "B"])
    expected = GenerationConfig(top_p=0.9, stop=("A", "B"))
    assert cli_options.decoding_options(args) == (expected, Method())


# A value of each field as it is typed, and what it is then; the test fails for a field without one.
TYPED = {
    "max_new_tokens": ("9", 9),
    "temperature": ("0.5", 0.5),
    "top_k": ("5", 5),
    "top_p": ("0.5", 0.5),
    "min_p": ("0.1", 0.1),
    "typical_p": ("0.5", 0.5),
    "repetition_penalty": ("1.2", 1.2),
    "presence_penalty": ("-1", -1.0),
    "frequency_penalty": ("0.5", 0.5),
    "no_repeat_ngram_size": ("3", 3),
    "logit_bias": ("5=-1.5", ((5, -1.5),)),
    "min_new_tokens": ("2", 2),
    "seed": ("7", 7),
    "stop": ("END", ("END",)),
    "num_beams": ("4", 4),
    "length_penalty": ("2", 2.0),
    "early_stopping": ("never", "never"),
    "num_beam_groups": ("1", 1),
    "diversity_penalty": ("0.5", 0.5),
    "num_candidates": ("3", 3),
    "stop_on_repetition": (None, True),
    "penalty_alpha": ("0.6", 0.6),
    "contrastive_top_k": ("6", 6),
    "context_alpha": ("0.5", 0.5),
    "regex": ("a+", "a+"),
    "json_schema": ("{}", "{}"),
}


@pytest.mark.parametrize("record", [GenerationConfig, Method])
def test_every_field_is_an_option_of_ask_that_arrives(record):
    for option_field in dataclasses.fields(record):
        typed, expected = TYPED[option_field.name]
        option = "--" + option_field.name.replace("_", "-")
        args = cli_options.parse(["ask", "q", option, *([typed] if typed else [])])
        config, method = cli_options.decoding_options(args)
        assert (
            getattr(config if record is GenerationConfig else method, option_field.name) == expected
        )


def test_beams_have_a_short_name_and_a_long_one():
    for option in ("--beams", "--num-beams"):
        config, _ = cli_options.decoding_options(cli_options.parse(["ask", "q", option, "3"]))
        assert config.num_beams == 3


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--regex", "a", "--json-schema", "{}"], "json_schema"),
        (["--penalty-alpha", "0.6", "--temperature", "1"], "temperature"),
        (["--context-alpha", "1", "--beams", "2"], "num_beams"),
        (["--context-alpha", "1", "--compare"], "--context-alpha"),
        (["--context-alpha", "1", "--without-retrieval"], "--without-retrieval"),
        (["--beams", "2", "--compare"], "--beams"),
    ],
)
def test_options_that_cannot_be_combined_are_a_sentence(given, named, capsys):
    assert run(FakeApplication(), "ask", "q", *given) == 2
    error = capsys.readouterr().err
    assert named in error and error.count("\n") == 1


def test_the_options_of_decoding_are_known_without_torch():
    code = "import sys, ui.cli_options; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_question_gets_instructions_in_its_own_language():
    assert cli.language_of("什么是键值缓存？") == "zh"
    assert cli.language_of("What is a KV cache?") == "en"


def test_folders_are_read_below_and_hidden_files_left_alone(tmp_path):
    for name in ("b.md", "a/c.md", ".git/config", "a/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [p.relative_to(tmp_path).as_posix() for p, _ in files_to_add([tmp_path])]
    assert found == ["a/c.md", "b.md"]


def test_help_answers_at_once():
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py"), "--help"], capture_output=True, timeout=30
    )
    assert done.returncode == 0
    assert b"serve" in done.stdout
    assert time.perf_counter() - started < 2  # 0.1 s alone; room for a busy machine


def test_help_imports_nothing_heavy():
    code = "import sys, app\ntry: app.main(['--help'])\nexcept SystemExit: pass\n" + (
        "print(sorted({'torch', 'gradio', 'numpy', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=30)
    assert done.stdout.decode().strip().endswith("[]")


@pytest.fixture
def real_store(tmp_path):
    embedder = FakeEmbedder()
    store = DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension)
    yield SimpleNamespace(indexed_store=lambda: (store, embedder)), store, embedder
    store.close()


def zipped(path, names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"About {name}.")
    return path


def test_a_zip_is_added_document_by_document(real_store, tmp_path, capsys):
    application, store, _ = real_store
    path = zipped(tmp_path / "docs.zip", ["a.md", "b/c.md"])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("empty.md", "")
    assert run(application, "add", str(path)) == 1
    out, err = capsys.readouterr()
    assert [line.split()[-1] for line in out.splitlines()] == ["docs/a.md", "docs/b/c.md"]
    assert "docs/empty.md was not added: This file is empty" in err
    assert sorted(d.name for d in store.documents()) == ["docs/a.md", "docs/b/c.md"]


def test_an_interrupt_keeps_what_was_added_and_says_so(real_store, tmp_path, capsys, monkeypatch):
    application, store, embedder = real_store
    real = embedder.embed_passages

    def interrupted(texts, progress=None, should_stop=None):
        if "b.md" in texts[0]:
            raise KeyboardInterrupt
        return real(texts)

    monkeypatch.setattr(embedder, "embed_passages", interrupted)
    path = zipped(tmp_path / "docs.zip", ["a.md", "b.md", "c.md"])
    assert run(application, "add", str(path)) == 130
    out, err = capsys.readouterr()
    assert "docs/a.md" in out
    assert "What is listed above was added and stays." in err
    assert [d.name for d in store.documents()] == ["docs/a.md"]


def test_every_option_of_retrieval_reaches_the_retriever_and_documents_may_be_named(capsys):
    store = FakeStore([stored("ab12", "lease.pdf"), stored("cd34", "house rules.docx")])
    application = FakeApplication(store, ui_fakes.retrieval(passage()))
    options = ["-k", "7", "--diversity", "0.5", "--neighbours", "2"]
    named = ["--document", "lease.pdf", "--document", "cd"]
    assert run(application, "search", "q", *options, *named) == 0
    assert application.asked == {
        "k": 7,
        "document_ids": ("ab12", "cd34"),
        "diversity": 0.5,
        "neighbours": 2,
    }
    assert "1 of 9 passages that were searched" in capsys.readouterr().out


def test_a_document_that_is_not_there_and_a_number_out_of_range_are_sentences(capsys):
    application = FakeApplication(FakeStore([stored("ab12", "a"), stored("ab34", "b")]))
    assert run(application, "search", "q", "--document", "x") == 1
    assert run(application, "search", "q", "--document", "ab") == 1
    assert run(application, "search", "q", "--diversity", "2") == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "No document has" in lines[0] and "2 documents have" in lines[1]
    assert "diversity must be a number from 0 to 1" in lines[2]


def test_a_chat_is_read_from_a_file_and_what_is_no_chat_is_refused(tmp_path):
    path = tmp_path / "chat.json"
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    path.write_text(json.dumps(messages), encoding="utf-8")
    assert cli.read_chat(path) == messages
    for bad in ("", "{}", "[1]", '[{"role": "system", "content": "x"}]', '[{"role": "user"}]'):
        path.write_text(bad, encoding="utf-8")
        with pytest.raises(cli.CommandError, match=r"chat\.json"):
            cli.read_chat(path)
