"""Host and origin checks, limits of bodies, times and numbers of requests, and the shutdown."""

import asyncio
import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import uvicorn

from torchsite.web import Settings, app, create_app, questions, server
from torchsite.web.guards import Guard, Traffic
from torchsite.web.problems import ProblemError
from torchsite.web.server import Server, bound

ASK = "/api/explain?model=digits"
JSON = {"Content-Type": "application/json"}


def refused(response, status, code):
    assert response.status_code == status, response.text[:200]
    said = response.json()
    assert (set(said), said["code"]) == ({"code", "reason"}, code)
    assert len(response.content) < 1_000
    return said["reason"]


# Fields and lengths


def test_hundreds_of_fields_are_refused_before_they_are_parsed(client, monkeypatch):
    monkeypatch.setattr(questions, "json", None)  # which cannot parse anything
    body = "{" + ",".join(f'"{i:06d}":1' for i in range(100_000)) + "}"
    refused(client.post(ASK, content=body, headers=JSON), 400, "malformed")


def test_errors_name_ten_fields_and_repeat_no_values(client):
    reason = refused(client.post(ASK, json={f"field{i}": "v" * 150 for i in range(20)}), 422, "invalid")
    assert reason.count("Extra inputs") == 10
    assert "and 10 more" in reason
    assert "vv" not in reason
    refused(client.post(ASK, json={f"field{i}": 1 for i in range(40)}), 400, "malformed")


@pytest.mark.parametrize("name", ["class", "against", "corners", "anything"])
def test_a_long_value_is_refused_and_not_repeated(client, name):
    refused(client.post(ASK, json={"sample": 0, name: "x" * 5_000_000}), 400, "malformed")
    refused(client.post(ASK, json={"sample": 0, "n" * 5_000_000: name}), 400, "malformed")


@pytest.mark.parametrize("value", ['"{}"', "{}", "-{}"], ids=["text", "number", "negative"])
@pytest.mark.parametrize("digits", [4_299, 5_000])
def test_a_class_of_thousands_of_digits_is_no_failure_of_the_server(client, value, digits):
    body = '{"sample": 0, "class": ' + value.format("9" * digits) + "}"
    refused(client.post(ASK, content=body, headers=JSON), 400, "malformed")


def test_bits_are_counted_before_they_are_unpacked(client):
    refused(client.post(ASK, json={"sample": 0, "hidden": "A" * 5_000_000}), 422, "invalid")


def test_questions_are_parsed_outside_the_event_loop(client, monkeypatch):
    threads, parse = [], questions._from_json

    def watched(*given):
        threads.append(threading.current_thread().name)
        return parse(*given)

    monkeypatch.setattr(questions, "_from_json", watched)
    assert client.post(ASK, json={"sample": 0}).status_code == 200
    assert threads
    assert all("AnyIO worker" in name for name in threads)


# Hosts and origins


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:9000", "192.168.1.5:8000"])
def test_this_machine_and_numeric_addresses_are_names_of_the_server(client, host):
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["rebound.example:8000", "localhost.example", "127.0.0.1.example", "", "[::1"]
)
def test_other_names_are_refused(client, host):
    refused(client.get("/api/samples?model=digits", headers={"Host": host}), 403, "wrong_host")


def test_a_name_can_be_allowed():
    asked = guard(hosts=("desk.example",))
    assert status_of(asked, b"desk.example:80") == 200
    assert status_of(asked, b"other.example:80") == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
            "Origin": "http://evil.example",
        },
    ],
)
def test_pages_of_other_sites_may_not_ask(client, headers):
    refused(client.post(ASK, json={"sample": 0}, headers=headers), 403, "cross_site")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://name.of.a.proxy"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ],
)
def test_its_own_pages_programs_and_links_may(client, headers):
    assert client.get("/", headers=headers).status_code == 200


# Stalled and open requests


async def answering(scope, receive, send):
    """An application that reads the body and says yes."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"yes"})


def scope_of(host=b"localhost", length=None):
    headers = [(b"host", host)] + ([] if length is None else [(b"content-length", b"%d" % length)])
    return {"type": "http", "method": "POST", "path": "/", "headers": headers}


async def asked_of(guard, messages, **how):
    """The status and the headers of the answer to a request that stalls after some messages."""
    left, said = list(messages), []

    async def receive():
        return left.pop(0) if left else await asyncio.Event().wait()

    async def send(message):
        said.append(message)

    await guard(scope_of(**how), receive, send)
    return (said[0]["status"], dict(said[0]["headers"])) if said else None


def guard(inner=answering, **settings):
    return Guard(inner, traffic=Traffic(Settings(**settings)))


def piece(size, more=True):
    return {"type": "http.request", "body": bytes(size), "more_body": more}


def in_a_loop_of_its_own(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def status_of(one, host):
    return in_a_loop_of_its_own(asked_of(one, [piece(0, more=False)], host=host))[0]


def test_a_body_has_a_time():
    one = guard(body_seconds=0.05)
    status, headers = in_a_loop_of_its_own(asked_of(one, [piece(100)], length=5_000))
    assert (status, headers[b"connection"].lower()) == (408, b"close")
    assert (one.traffic.held, len(one.traffic._open)) == (0, 0)


def test_a_client_that_leaves_is_not_answered():
    assert in_a_loop_of_its_own(asked_of(guard(), [piece(9), {"type": "http.disconnect"}], length=99)) is None


def test_the_bytes_of_open_requests_are_bounded_and_small_ones_get_through():
    async def crowd():
        one = guard(max_held=1_000_000, max_open=6, body_seconds=0.5)
        large = [asyncio.create_task(asked_of(one, [piece(9)], length=300_000)) for _ in range(5)]
        await asyncio.sleep(0.05)
        held, small = one.traffic.held, await asked_of(one, [piece(9, more=False)], length=9)
        idle = [asyncio.create_task(asked_of(one, [piece(1)], length=2)) for _ in range(4)]
        return held, small[0], [(await task)[0] for task in large], [(await task)[0] for task in idle]

    held, small, large, idle = in_a_loop_of_its_own(crowd())
    assert (held, small) == (900_000, 200)
    assert large == [408, 408, 408, 503, 503]
    assert idle == [408, 408, 408, 503]


# The end


@contextmanager
def running(application):
    """A server in a thread: its port, and the server."""
    with bound("127.0.0.1", 0) as listener:
        one = Server(
            uvicorn.Config(application, log_level="critical", access_log=False, timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=one.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1], one
        one.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def test_at_the_end_every_open_request_is_answered(library, monkeypatch):
    started, gate = threading.Event(), threading.Event()

    def slow(library, job):
        started.set()
        gate.wait(20)

    def ask(port, body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", ASK, body, JSON | {"Content-Length": str(max(len(body), 20))})
        with connection.getresponse() as response:
            answer = response.status, response.headers["Retry-After"], json.loads(response.read())
        connection.close()
        return answer

    monkeypatch.setattr(app, "answer", slow)
    monkeypatch.setattr(server, "GRACE_SECONDS", 0.3)
    question = json.dumps({"sample": 0, "angle": 20})
    with running(create_app(library)) as (port, one), ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, port, question)
        assert started.wait(10)
        others = [pool.submit(ask, port, body) for body in (question, question, "{")]  # the last one stalls
        while len(others) + 1 > len(one.server_state.tasks):
            time.sleep(0.01)
        one.should_exit = True
        answers = [asked.result() for asked in (first, *others)]
        gate.set()
    for status, again, said in answers:
        assert (status, again, said["code"]) == (503, "1", "busy")
        assert "shutting down" in said["reason"]


def test_what_is_done_in_time_is_answered_at_the_end():
    async def end():
        release = asyncio.Event()

        async def inner(scope, receive, send):
            await release.wait()
            await answering(scope, receive, send)

        one = guard(inner)
        asked = asyncio.create_task(asked_of(one, [piece(1, more=False)], length=1))
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(one.traffic.close(5))
        await asyncio.sleep(0.01)
        late = await asked_of(one, [piece(1, more=False)], length=1)
        release.set()
        await closing
        return (await asked)[0], late[0]

    assert in_a_loop_of_its_own(end()) == (200, 503)


def test_refusals_are_problems():
    with pytest.raises(ProblemError) as told, Traffic(Settings(max_body=10)).admitted(11):
        pass
    assert told.value.status == 413
