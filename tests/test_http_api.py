"""The OpenAI-compatible routes, over real generation on a tiny model."""

from __future__ import annotations

import base64
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from generation.config import GenerationConfig
from generation.scheduler import Scheduler
from tests.ui_fakes import parts, passage, retrieval
from ui.api_request import BadRequest, parse
from ui.http_api import routes
from ui.session import answer

ASK = {"messages": [{"role": "user", "content": "How long?"}], "max_tokens": 8}
FOUND = retrieval(passage(1), passage(2))


def client(auth=None, made=None):
    return TestClient(Starlette(routes=routes(made or parts(FOUND), auth)))


def ask(body, **options):
    return client(**options).post("/v1/chat/completions", json=body)


def events(response):
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_an_answer_is_that_of_the_page():
    made = parts(FOUND)
    last = list(answer(made, "How long?", config=GenerationConfig(max_new_tokens=8)))[-1]
    body = ask(ASK, made=made).json()
    choice = body["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": last.text}
    assert body["usage"]["completion_tokens"] == last.tokens
    assert body["usage"]["prompt_tokens"] == last.prompt.tokens
    assert body["glassbox"]["finish_reason"] == last.finish_reason
    assert [p["document"] for p in body["glassbox"]["passages"]] == ["lease.pdf"] * 2


def test_a_streamed_answer_is_the_same_text_in_pieces():
    whole = ask(ASK).json()["choices"][0]["message"]["content"]
    parts_of_it = events(ask({**ASK, "stream": True}))
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in parts_of_it) == whole
    assert parts_of_it[-1]["choices"][0]["finish_reason"] in ("stop", "length")
    assert parts_of_it[-1]["usage"]["completion_tokens"] > 0


def test_beams_are_sent_when_they_are_final():
    beams = {**ASK, "num_beams": 3}
    whole = ask(beams).json()["choices"][0]["message"]["content"]
    streamed = events(ask({**beams, "stream": True}))
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in streamed) == whole


def test_log_probabilities_are_those_of_the_steps():
    body = ask({**ASK, "logprobs": True, "top_logprobs": 3}).json()
    content = body["choices"][0]["logprobs"]["content"]
    assert len(content) == body["usage"]["completion_tokens"]
    for token in content:
        assert token["logprob"] <= 0
        assert len(token["top_logprobs"]) >= 3


def test_retrieval_can_be_off_and_a_form_be_asked_for():
    schema = {"type": "json_schema", "json_schema": {"schema": {"enum": ["yes", "no"]}}}
    body = ask({**ASK, "retrieval": False, "response_format": schema}).json()
    assert body["glassbox"]["passages"] == []
    assert json.loads(body["choices"][0]["message"]["content"]) in ("yes", "no")


def test_earlier_turns_and_the_system_message_are_read():
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "How long?"},
    ]
    asked = parse({"messages": turns, "seed": 3, "stop": "x", "logit_bias": {"5": 1}})
    assert asked.question == "How long?"
    assert asked.history == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
    ]
    assert asked.system == "Be brief."
    assert asked.config == GenerationConfig(seed=3, stop=("x",), logit_bias={5: 1})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "last message"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": {"a": 1}}]}, "content"),
        ({"messages": ["x"]}, "role"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 0}, "max_new_tokens"),
        ({"top_p": 0}, "top_p"),
        ({"temprature": 1}, "temprature"),
        ({"tools": []}, "tools"),
        ({"n": 2}, "n must be 1"),
        ({"k": 0}, "passages must"),
        ({"passages": 51}, "passages must"),
        ({"diversity": 2}, "diversity"),
        ({"neighbours": -1}, "neighbours"),
        ({"follow_up": "magic"}, "follow_up"),
        ({"retrieval": "yes"}, "retrieval"),
        ({"document_ids": "all"}, "document_ids"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"num_beams": 2, "regex": "a"}, "num_beams"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(change, named):
    with pytest.raises(BadRequest, match=named):
        parse({**ASK, **change})
    response = ask({**ASK, **change})
    assert response.status_code == 400
    assert named in response.json()["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_what_is_no_request_is_refused(body):
    assert client().post("/v1/chat/completions", content=body).status_code == 400


def test_a_bad_expression_is_a_sentence_also_when_streaming():
    for stream in (False, True):
        response = ask({**ASK, "regex": "(a", "stream": stream})
        assert response.status_code == 400
        assert "regular expression" in response.json()["error"]["message"]


def test_a_full_queue_is_429_with_when_to_come_back():
    made = replace(parts(FOUND), scheduler=Scheduler(max_waiting=0))
    with made.scheduler.turn("somebody"):
        response = ask(ASK, made=made)
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0


def test_the_model_is_listed_and_health_answers():
    assert client().get("/v1/models").json()["data"][0]["id"] == "tiny-llama"
    assert client().get("/health").json() == {"status": "ok", "waiting": 0}


def test_with_a_password_it_is_asked_for():
    auth = ("me", "secret")
    assert ask(ASK, auth=auth).status_code == 401
    for given, status in (("me:wrong", 401), ("me:secret", 200), ("nonsense", 401)):
        header = "Basic " + base64.b64encode(given.encode()).decode()
        response = client(auth).get("/v1/models", headers={"Authorization": header})
        assert response.status_code == status


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/glassbox/ways"])
@pytest.mark.parametrize(
    "name", ["passages", "document_ids", "diversity", "neighbours", "follow_up"]
)
@pytest.mark.parametrize("value", [True, -1, 1e308, 10**30, float("nan"), "\ud800", [1], {"a": 1}])
def test_an_option_of_retrieval_that_makes_no_sense_is_refused_by_name(path, name, value):
    question = {"question": "How long?"} if path.endswith("ways") else ASK
    answered = client().post(path, content=json.dumps({**question, name: value}))
    assert answered.status_code == 400
    assert name in answered.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_half_an_emoji_anywhere_in_a_request_is_answered(stream):
    messages = [
        {"role": "system", "content": "Be brief \ud83d"},
        {"role": "user", "content": "What is \udc00?"},
        {"role": "assistant", "content": "A reef \ud800."},
        {"role": "user", "content": "Where is it \ud83d"},
    ]
    body = {"messages": messages, "max_tokens": 4, "stream": stream}
    answered = client().post("/v1/chat/completions", content=json.dumps(body))
    assert answered.status_code == 200
    record = events(answered)[-1] if stream else answered.json()
    assert record["glassbox"]["searched_for"]["text"] == "What is \ufffd? Where is it \ufffd"


def test_an_option_whose_name_is_no_text_is_refused():
    answered = client().post("/v1/chat/completions", content=json.dumps({**ASK, "\ud800": 1}))
    assert answered.status_code == 400 and "There is no option" in answered.text


def test_requests_at_once_search_each_in_their_own_documents():
    made = parts(FOUND)
    asked = []

    def retrieve(query, k=4, document_ids=None, **options):
        asked.append((query, document_ids))
        time.sleep(0.01)
        return FOUND

    made.retriever.retrieve = retrieve
    one = client(made=made)

    def post(number):
        messages = [{"role": "user", "content": f"How long is number {number}?"}]
        body = {"messages": messages, "max_tokens": 1, "document_ids": [f"document {number}"]}
        return one.post("/v1/chat/completions", json=body).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(post, range(8))) <= {200, 429}
    assert sorted(asked) == [(f"How long is number {n}?", (f"document {n}",)) for n in range(8)]
