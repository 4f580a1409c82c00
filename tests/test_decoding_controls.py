"""Every decoding option is reachable: on the page, on the command line and by the interface."""

from dataclasses import fields

import gradio as gr
import pytest

from generation.config import GenerationConfig
from generation.sampling import ORDER
from generation.strategies import Method, strategy_name
from tests.ui_fakes import parts
from ui import api_request, cli_options, compare
from ui.controls import Controls
from ui.decoding_controls import DecodingControls, problem_html
from ui.decoding_text import chip_text, order_text, strategy_text
from ui.i18n import LANGUAGES, Words
from ui.settings import decoding_form, read_decoding, read_settings

NAMES = {field.name for record in (GenerationConfig, Method) for field in fields(record)}
CONFIGS = [
    GenerationConfig(),
    GenerationConfig(temperature=0.7, top_p=0.9, typical_p=0.8, seed=3, stop=("A", "B c")),
    GenerationConfig(logit_bias={5: 1.5, 7: -100}, presence_penalty=-0.5, stop_on_repetition=True),
    *(GenerationConfig(num_beams=4, early_stopping=early) for early in (True, False, "never")),
    GenerationConfig(num_beams=4, num_beam_groups=2, diversity_penalty=0.5, min_new_tokens=2),
]
METHODS = [
    Method(),
    Method(penalty_alpha=0.4, contrastive_top_k=7),
    Method(context_alpha=1.5),
    Method(regex="(yes|no)"),
    Method(json_schema='{"type": "object"}'),
]


@pytest.fixture
def chat() -> Controls:
    with gr.Blocks():
        return Controls(parts().store, Words(), gr.State("en"))


def form_of(controls: Controls, **changes):
    return {**{name: c.value for name, c in controls._fields.items()}, **changes}


def test_every_option_has_a_control_an_option_of_ask_and_a_name_in_the_interface(chat):
    in_ask = set(vars(cli_options.parse(["ask", "q"])))
    assert not NAMES & in_ask  # left to the decoder unless given
    assert set(chat._fields) >= NAMES
    assert api_request.CONFIG_NAMES | api_request.METHOD_NAMES == NAMES
    for name in NAMES:
        option = "--" + name.replace("_", "-")
        given = [] if name == "stop_on_repetition" else ["1"]
        assert name in vars(cli_options.parse(["ask", "q", option, *given]))


def test_untouched_controls_are_the_decoder_s_own_defaults(chat):
    settings = read_settings(form_of(chat))
    assert settings.config == GenerationConfig()
    assert settings.method == Method()


@pytest.mark.parametrize("config", CONFIGS)
def test_settings_go_into_a_form_and_come_back(config):
    assert read_decoding(decoding_form(config, Method())) == (config, Method())


@pytest.mark.parametrize("method", METHODS)
def test_a_method_goes_into_a_form_and_comes_back(method):
    assert read_decoding(decoding_form(GenerationConfig(), method)) == (GenerationConfig(), method)


def test_only_what_is_chosen_counts(chat):
    form = form_of(chat, regex="a+", json_schema="{}", penalty_alpha=0.9, context_alpha=2.0)
    assert read_settings(form).method == Method()
    assert read_settings({**form, "form": "regex"}).method == Method(regex="a+")
    assert read_settings({**form, "method": "context_aware"}).strategy == "context-aware greedy"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"logit_bias": "5"}, "logit_bias"),
        ({"logit_bias": "x:1"}, "logit_bias"),
        ({"logit_bias": "5:101"}, "logit_bias"),
        ({"logit_bias": "5:nan"}, "logit_bias"),
        ({"num_beams": 4, "num_beam_groups": 3}, "num_beam_groups"),
        ({"num_beams": 2, "stop_on_repetition": True}, "stop_on_repetition"),
        ({"method": "contrastive", "temperature": 0.7}, "temperature"),
        ({"method": "context_aware", "num_beams": 2}, "num_beams"),
        ({"method": "contrastive", "form": "regex", "regex": "a"}, "cannot be combined"),
        ({"form": "json", "json_schema": " "}, "json_schema"),
        ({"form": "poem"}, "form"),
        ({"method": "magic"}, "method"),
        ({"early_stopping": "soon"}, "early_stopping"),
        ({"min_new_tokens": 300}, "min_new_tokens"),
    ],
)
def test_what_cannot_be_combined_is_a_sentence_in_the_panel(chat, changes, named):
    with pytest.raises(ValueError, match=named) as caught:
        read_settings(form_of(chat, **changes))
    assert named in problem_html(caught.value, "en")
    assert problem_html(None, "en") == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_strategy_and_the_order_have_words(language):
    configs = [*CONFIGS, GenerationConfig(num_beams=2, temperature=1.0)]
    names = [strategy_name(config, Method()) for config in configs]
    names += [strategy_name(c, m) for m in METHODS for c in CONFIGS[:2]]
    assert all(strategy_text(name, language) for name in names)
    assert order_text(language).count(" → ") == len(ORDER) - 1


def test_the_chip_names_the_strategy_and_what_shapes_it(chat):
    def chip(**changes):
        form = form_of(chat, **changes)
        return chip_text(form, read_settings(form), "en")

    assert chip() == "Precise · greedy"
    assert chip(temperature=0.7, top_p=0.9) == "Balanced · T 0.7 · top-p 0.9"
    assert chip(num_beams=4) == "Precise · beam search · 4 beams"
    assert chip(method="contrastive") == "Precise · contrastive search"
    assert chip_text(form_of(chat), None, "en").startswith("⚠")


def test_the_comparison_has_every_option_that_can_be_compared():
    with gr.Blocks():
        controls = DecodingControls(Words())
        controls.build_first(whole=False)
        controls.build_all(lockstep=True)
    beams = {name for name in NAMES if "beam" in name}
    left_out = {"length_penalty", "early_stopping", "diversity_penalty", "context_alpha"}
    beside = {name for name, *_ in compare.NUMBERS}
    assert NAMES - set(controls.fields) == beams | left_out | (beside & NAMES)
    assert "context_aware" not in [value for _, value in controls.fields["method"].choices]
