"""Every option of retrieval is reachable: on each page, on the command line and by the API."""

from dataclasses import dataclass, fields
from types import SimpleNamespace

import gradio as gr
import pytest

from rag.retrieval_config import RetrievalConfig
from tests.ui_fakes import parts
from ui import api_request, cli_options, shell
from ui.controls import Controls
from ui.i18n import Words
from ui.retrieval_controls import RetrievalControls
from ui.settings import read_retrieval, read_settings

NAMES = {field.name for field in fields(RetrievalConfig)}
OPTIONS = {
    "passages": ["--passages", "2"],
    "document_ids": ["--document", "a"],
    "diversity": ["--diversity", "0.5"],
    "neighbours": ["--neighbours", "1"],
    "follow_up": ["--follow-up", "model"],
}


@dataclass
class Store:
    names: list

    def documents(self):
        return [SimpleNamespace(id=name.upper(), name=name) for name in self.names]


def controls(store=None):
    with gr.Blocks():
        made = RetrievalControls(store or Store([]), Words())
        made.build_passages()
        made.build_follow_up()
        made.build_spread()
        made.build_documents()
    return made


def test_every_option_has_a_control_an_option_of_ask_and_a_name_in_the_interface():
    assert set(controls().fields) == NAMES == set(OPTIONS) == api_request.RETRIEVAL_NAMES
    untouched = set(vars(cli_options.parse(["ask", "q"])))
    for name, option in OPTIONS.items():
        assert name not in untouched  # left to the record unless given
        assert name in vars(cli_options.parse(["ask", "q", *option]))


def test_untouched_controls_are_the_record_s_own_defaults():
    form = {name: component.value for name, component in controls().fields.items()}
    assert read_retrieval(form) == RetrievalConfig()


def test_the_chat_has_all_of_them():
    with gr.Blocks():
        chat = Controls(parts().store, Words(), gr.State("en"))
    assert set(chat._fields) >= NAMES | {"use_retrieval"}
    form = {name: component.value for name, component in chat._fields.items()}
    assert read_settings(form).retrieval == RetrievalConfig()


def test_the_comparison_and_the_four_ways_have_all_that_need_no_chat():
    config = shell.build_demo(parts()).get_config_file()
    labels = [component["props"].get("label") for component in config["components"]]
    for label in ("Diversity", "Neighbours", "Only in these documents"):
        assert labels.count(label) == 3  # chat, comparison, four ways
    assert labels.count("Use the chat to complete follow-up questions") == 1


def test_a_document_that_was_removed_is_no_longer_chosen():
    store = Store(["a", "b"])
    made = controls(store)
    assert made.document_choices(["A", "B"])["value"] == ["A", "B"]
    store.names.remove("a")
    update = made.document_choices(["A", "B"])
    assert update["value"] == ["B"]
    assert update["choices"] == [("b", "B")]
    assert made.document_choices(None)["value"] == []


@pytest.mark.parametrize(
    ("body", "named"),
    [({"follow_up": "x"}, "follow_up"), ({"passages": 0}, "passages"), ({"k": "4"}, "passages")],
)
def test_the_interface_refuses_by_name(body, named):
    messages = [{"role": "user", "content": "q"}]
    with pytest.raises(api_request.BadRequest, match=named):
        api_request.parse({"messages": messages, **body})


def test_the_interface_reads_all_of_them_and_may_switch_retrieval_off():
    messages = [{"role": "user", "content": "q"}]
    wanted = {"k": 2, "document_ids": ["a"], "diversity": 0.5, "neighbours": 1, "follow_up": "off"}
    asked = api_request.parse({"messages": messages, **wanted})
    assert asked.retrieval == RetrievalConfig(2, ("a",), 0.5, 1, "off")
    assert api_request.parse({"messages": messages, "retrieval": False}).retrieval is None
