"""A form's values to checked settings."""

import pytest

from rag.retrieval_config import FollowUp, RetrievalConfig
from ui.settings import PRESETS, matching_preset, read_settings

FORM = {
    **PRESETS["balanced"],
    "repetition_penalty": 1.0,
    "max_new_tokens": 64.0,
    "num_beams": 1,
    "length_penalty": 1.0,
    "seed": 7,
    "stop": "\nEND\n \nSTOP HERE\n",
    "system": "  ",
    "use_retrieval": True,
    "passages": 4,
    "document_ids": [],
    "diversity": 0,
    "neighbours": 1.0,
    "follow_up": "off",
}


def test_every_value_arrives():
    settings = read_settings(FORM)
    assert settings.config.temperature == 0.7
    assert settings.config.max_new_tokens == 64
    assert settings.config.stop == ("END", "STOP HERE")
    assert settings.config.seed == 7
    assert settings.system is None
    assert settings.retrieval == RetrievalConfig(neighbours=1, follow_up=FollowUp.OFF)


def test_chosen_documents_are_searched_and_retrieval_can_be_off():
    assert read_settings({**FORM, "document_ids": ["a"]}).retrieval.document_ids == ("a",)
    assert read_settings({**FORM, "use_retrieval": False}).retrieval is None


def test_beams_with_a_temperature_are_beam_sampling():
    assert read_settings({**FORM, "num_beams": 4}).strategy == "beam sampling"


@pytest.mark.parametrize(
    "name",
    ["temperature", "top_k", "top_p", "min_p", "seed", "max_new_tokens", "passages", "diversity"],
)
@pytest.mark.parametrize("value", [None, -1, float("nan"), float("inf"), "7", "rubbish", []])
def test_a_number_that_makes_no_sense_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        read_settings({**FORM, name: value})


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_recognised_by_its_numbers(name):
    assert matching_preset({**FORM, **PRESETS[name]}) == name
    assert matching_preset({**FORM, **PRESETS[name], "top_k": 3}) is None
