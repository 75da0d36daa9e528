"""Events of ASGI, by hand: what a server says, and what the application answers."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.driver.oip.endpoint_setting import Setting
from tests.driver.test_run_permits import until
from tightship.driver.oip.admission.gate import Gate
from tightship.driver.oip.admission.quotas import Quotas
from tightship.driver.oip.http.application import HttpApplication


@pytest.fixture
def setting(tmp_path):
    found = Setting(tmp_path)
    yield found
    found.close()


@pytest.fixture
def app(setting):
    with ThreadPoolExecutor(2) as threads:
        yield HttpApplication(setting.calls, 1 << 16, threads, threads)


async def played(app, scope, events):
    """Messages of the application; after the events, a client that waits."""
    said, coming = [], list(events)

    async def receive():
        if not coming:
            await asyncio.Event().wait()
        return coming.pop(0)

    async def send(message):
        said.append(message)

    await asyncio.wait_for(app(scope, receive, send), 20)
    return said


def play(app, scope, *events):
    return asyncio.run(played(app, scope, events))


def asked(path, method="GET", root="", **given):
    raw = given.pop("raw_path", path.encode())
    return {
        "type": "http", "method": method, "path": path, "raw_path": raw, "root_path": root,
        "query_string": b"", "headers": [], "client": ("127.0.0.1", 1), **given,
    }  # fmt: skip


WHOLE = {"type": "http.request", "body": b"", "more_body": False}


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/v2/health/live", ""),
        ("/v2/health/live", "/v2"),
        ("/at/v2/health/live", "/at"),
        ("/at/v2/health/live", "/at/v2"),
        ("/health/live", "/v2"),  # as old servers of ASGI cut it
    ],
)
@pytest.mark.parametrize("has_raw", [True, False])
def test_a_path_is_found_wherever_the_application_is_mounted(app, path, root, has_raw):
    given = {} if has_raw else {"raw_path": None}
    start, body = play(app, asked(path, root=root, **given), WHOLE)
    assert (start["status"], json.loads(body["body"])) == (200, {"live": True})


def test_a_body_may_come_in_parts(app, setting):
    body, scope = setting.body(), asked("/v2/models/neg/infer", "POST")
    parts = [body[:10], body[10:]]
    events = [{"type": "http.request", "body": each, "more_body": True} for each in parts]
    start, _ = play(app, scope, *events, WHOLE)
    assert start["status"] == 200
    assert setting.count().success_count == 1


def test_a_body_above_the_limit_ends_the_connection(app):
    headers = [(b"content-length", b"%d" % (1 << 17))]
    start, body = play(app, asked("/v2/models/neg/infer", "POST", headers=headers))
    assert start["status"] == 413
    assert (b"Connection", b"close") in start["headers"]
    assert "--max-body" in json.loads(body["body"])["error"]


def test_a_client_that_is_gone_gets_nothing_and_never_runs(app, setting):
    scope, gone = asked("/v2/models/neg/infer", "POST"), {"type": "http.disconnect"}
    assert play(app, scope, {**WHOLE, "more_body": True}, gone) == []
    assert setting.endpoint.permits.take_free()  # so that the next one has to wait
    body = {"type": "http.request", "body": setting.body(), "more_body": False}
    start, _ = play(app, scope, body, gone)
    assert start["status"] == 503
    until(lambda: setting.count().pending_count == 0)
    setting.endpoint.permits.give_back()
    assert setting.count().success_count == 0


def test_events_of_a_servers_life_are_answered(app):
    events = [{"type": f"lifespan.{each}"} for each in ("startup", "shutdown")]
    said = play(app, {"type": "lifespan"}, *events)
    assert [each["type"] for each in said] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


def test_other_protocols_are_refused(app):
    assert play(app, {"type": "websocket"})[0]["type"] == "websocket.close"


def test_a_quota_counts_what_came_of_a_body_and_no_more(setting):
    quotas = Quotas(sizes=[(1000, 3600)])
    app = HttpApplication(setting.calls, 500, None, None, Gate(quotas=quotas))
    head = asked("/v2/models/neg/infer", "POST", headers=[(b"content-length", b"501")])
    assert play(app, head)[0]["status"] == 413
    assert quotas.take("127.0.0.1") is None
    part = {"type": "http.request", "body": bytes(400), "more_body": True}
    gone = {"type": "http.disconnect"}
    for _ in range(3):
        assert play(app, asked("/v2/models/neg/infer", "POST"), part, gone) == []
    assert "more than 1000 bytes" in quotas.take("127.0.0.1").reason


@pytest.mark.parametrize("size", [0, 10, 64 << 10, 300_000])
def test_a_call_has_ended_once_its_client_has_the_whole_response(setting, size):
    quotas = Quotas(concurrent_max=1)
    app = HttpApplication(setting.calls, 500, None, None, Gate(quotas=quotas))
    whole, came, seen = memoryview(bytes(range(256)) * 1200)[:size], bytearray(), []

    async def respond(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": whole, "more_body": False})

    async def send(message):
        if message["type"] == "http.response.body":
            came.extend(message["body"])
            if next_begins := quotas.begin("127.0.0.1") is None:
                quotas.end("127.0.0.1")
            seen.append((len(came) == size, next_begins))

    app.texts = respond
    asyncio.run(app(asked("/v1/models"), None, send))
    assert came == whole
    assert all(is_whole == next_begins for is_whole, next_begins in seen)
    assert seen[-1] == (True, True)
    assert quotas.begin("127.0.0.1") is None
