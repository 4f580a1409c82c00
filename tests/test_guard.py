"""Requests that only a hostile page would make are refused; every answer carries the policy."""

import asyncio

import pytest

from ui.guard import Guard


async def inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(headers, names=frozenset({"127.0.0.1", "localhost", "::1"})):
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}
    asyncio.run(Guard(inner, names)(scope, None, send))
    return sent[0]["status"], dict(sent[0]["headers"])


@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost:7860", "[::1]:7860", "LOCALHOST"])
def test_its_own_address_is_answered(host):
    assert ask({"host": host})[0] == 200


@pytest.mark.parametrize("host", ["evil.example:7860", "", "127.0.0.1.evil.example", "[::bad"])
def test_a_name_pointed_at_this_machine_is_refused(host):
    assert ask({"host": host})[0] == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.io"])
def test_a_post_from_another_site_is_refused(origin):
    assert ask({"host": "127.0.0.1:7860", "origin": origin})[0] == 403


def test_the_page_itself_may_post():
    assert ask({"host": "127.0.0.1:7860", "origin": "http://127.0.0.1:7860"})[0] == 200
    assert ask({"host": "box.lan", "origin": "https://box.lan"}, names=None)[0] == 200


def test_behind_a_password_any_host_is_answered_but_no_other_site():
    assert ask({"host": "box.lan:7860"}, names=None)[0] == 200
    assert ask({"host": "box.lan:7860", "origin": "https://evil.example"}, names=None)[0] == 403


def test_every_answer_forbids_other_hosts():
    for headers in ({"host": "127.0.0.1"}, {"host": "evil.example"}):
        policy = ask(headers)[1][b"content-security-policy"].decode()
        assert "default-src 'self'" in policy
        assert "http" not in policy
