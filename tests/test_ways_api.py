"""The JSON route for the four ways, over real generation on a tiny model."""

import base64

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui_fakes import parts, passage, retrieval
from ui.http_api import routes
from ui.ways import write_ways
from ui.ways_api import PATH

ASK = {"question": "How long?", "template": "Sure: {{sure|choices=yes,no}}.", "max_new_tokens": 8}


def ask(body, made=None, auth=None, **options):
    made = made or parts(retrieval(passage(1), passage(2)), end_ids=frozenset())
    client = TestClient(Starlette(routes=routes(made, auth)))
    return client.post(PATH, json=body, **options)


def test_the_answers_are_those_of_the_page():
    made = parts(end_ids=frozenset())
    *_, last = write_ways(made, ASK["question"], ASK["template"], 8)
    ways = ask(ASK, made).json()["ways"]
    assert ways["autoregression"]["text"] == last.plain.text
    assert ways["retrieval_autoregression"]["text"] == last.retrieved.text
    assert ways["parallel"]["one_shot"]["text"] == last.one_shot.text
    assert ways["parallel"]["jacobi"]["text"] == last.plain.text
    assert ways["parallel"]["jacobi"]["equal_to_greedy"] is True
    assert ways["template"]["text"] == last.template.text
    assert ways["template"]["slots"]["sure"] in ("yes", "no")


def test_each_says_its_passes_and_seconds():
    ways = ask(ASK).json()["ways"]
    runs = [ways["autoregression"], ways["retrieval_autoregression"], ways["template"]]
    runs += ways["parallel"].values()
    assert all(run["passes"] > 0 and run["seconds"] > 0 for run in runs)
    assert ways["parallel"]["one_shot"]["passes"] == 1
    assert ways["autoregression"]["passes"] == 8
    jacobi = ways["parallel"]["jacobi"]
    assert jacobi["passes"] == len(jacobi["iterations"])


def test_template_and_length_may_be_left_out():
    body = ask({"question": "多久？"}).json()
    assert body["ways"]["template"]["text"].startswith("简短回答：")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ([], "object"),
        ({}, "question"),
        ({"question": " "}, "question"),
        ({"question": 1}, "question"),
        ({**ASK, "template": 1}, "template"),
        ({**ASK, "template": "no slot"}, "template has no slot"),
        ({**ASK, "template": "{{a|choices=,}}"}, "choices"),
        ({**ASK, "max_new_tokens": 1000}, "max_new_tokens"),
        ({**ASK, "max_new_tokens": "8"}, "max_new_tokens"),
        ({**ASK, "temperature": 1}, "temperature"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(body, named):
    response = ask(body)
    assert response.status_code == 400
    assert named in response.json()["error"]["message"]


def test_with_a_password_it_is_asked_for():
    assert ask(ASK, auth=("me", "secret")).status_code == 401
    header = "Basic " + base64.b64encode(b"me:secret").decode()
    answered = ask(ASK, auth=("me", "secret"), headers={"Authorization": header})
    assert answered.status_code == 200
