"""Exchanges of the logged application."""

import asyncio

import pytest

from tightship.driver.oip.http.application import EXCHANGE
from tightship.driver.oip.http.logged import LoggedApplication
from tightship.driver.oip.request_log import FIELDS, log_line


async def _no_event():
    return {"type": "http.disconnect"}


def test_a_request_that_is_not_answered_is_logged_too(caplog):
    caplog.set_level("INFO")
    sent = []

    async def leave(scope, receive, _):
        assert scope[EXCHANGE].request_id == "seven"
        await receive()
        if scope["path"] == "/fails":
            raise ValueError("wrong")

    async def call(path):
        headers = [(b"x-request-id", b"seven")]
        scope = {"type": "http", "method": "GET", "path": path, "headers": headers}
        await LoggedApplication(leave, (log_line,))(scope, _no_event, sent.append)

    asyncio.run(call("/leaves"))
    with pytest.raises(ValueError, match="wrong"):
        asyncio.run(call("/fails"))
    assert sent == []
    assert [getattr(record, FIELDS)["status"] for record in caplog.records] == ["", ""]
    assert caplog.messages == ["GET /leaves: no answer", "GET /fails: no answer"]


def test_other_events_are_passed_on():
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["type"], receive, send))

    asyncio.run(LoggedApplication(app, ())({"type": "lifespan"}, 1, 2))
    assert seen == [("lifespan", 1, 2)]
