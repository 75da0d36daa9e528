"""A request and its response on a connection of uvicorn."""

import asyncio

import pytest

pytest.importorskip("uvicorn")
from tightship.driver.oip.http.cycle import HELD_BYTES_MAX, Cycle

START = {"type": "http.response.start", "status": 200, "headers": [(b"Content-Length", b"2")]}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"


class Channel:
    """A connection, its transport and its flow: what was written, and what was asked."""

    write_paused = False

    def __init__(self, *, stays_open=True):
        self.pieces, self.asked, self.stays_open = [], [], stays_open

    def write(self, data):
        self.pieces.append(bytes(data))

    def is_closing(self):
        return False

    def read_on(self):
        self.asked.append("read on")

    def watch(self):
        self.asked.append("watch")

    def is_kept(self):
        return self.stays_open


def made(channel, method="GET", **given):
    return Cycle(
        channel,
        scope={"method": method},
        transport=channel,
        flow=channel,
        logger=None,
        access_logger=None,
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        on_response=lambda: channel.asked.append("answered"),
        **{"expect_100_continue": False, "keep_alive": True, **given},
    )


def test_parts_of_a_body_are_passed_on_as_they_came_and_then_the_end():
    async def scene():
        channel = Channel()
        cycle, parts = made(channel), [b"first", b"second"]
        for each in parts:
            cycle.add(each)
        found = [await cycle.receive() for _ in parts]
        assert [each["body"] for each in found] == parts
        assert all(one["body"] is other for one, other in zip(found, parts, strict=True))
        assert [each["more_body"] for each in found] == [True, True]
        assert cycle.held_bytes == 0
        cycle.end_body()
        assert await cycle.receive() == {"type": "http.request", "body": b"", "more_body": False}
        waiting = asyncio.ensure_future(cycle.receive())
        await asyncio.sleep(0)
        assert channel.asked == ["watch"]
        cycle.disconnect()
        assert await waiting == {"type": "http.disconnect"}

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("method", "size", "pieces"), [("GET", 2, 1), ("GET", HELD_BYTES_MAX + 1, 2), ("HEAD", 2, 1)]
)
def test_a_response_is_one_piece_unless_it_is_large(method, size, pieces):
    async def scene():
        channel, body = Channel(), b"x" * size
        cycle = made(channel, method)
        await cycle.send(START)
        assert channel.pieces == []
        await cycle.send({"type": "http.response.body", "body": body})
        assert len(channel.pieces) == pieces
        assert b"".join(channel.pieces) == HEAD + b"\r\n" + (b"" if method == "HEAD" else body)
        assert channel.asked == ["answered"]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("stays_open", "keep_alive", "headers"),
    [(False, True, []), (True, False, []), (True, True, [(b"Connection", b"close")])],
)
def test_the_last_response_says_so_once(stays_open, keep_alive, headers):
    async def scene():
        channel = Channel(stays_open=stays_open)
        cycle = made(channel, keep_alive=keep_alive)
        await cycle.send({**START, "headers": START["headers"] + headers})
        await cycle.send({"type": "http.response.body", "body": b"ok"})
        assert channel.pieces == [HEAD + b"Connection: close\r\n\r\nok"]
        assert not cycle.keep_alive

    asyncio.run(scene())


def test_a_response_of_unknown_length_comes_in_chunks():
    async def scene(version):
        channel = Channel()
        cycle = made(channel)
        cycle.scope["http_version"] = version
        await cycle.send({"type": "http.response.start", "status": 200, "headers": []})
        for body, more in ((b"first", True), (b"", True), (b"x" * 16, True), (b"", False)):
            await cycle.send({"type": "http.response.body", "body": body, "more_body": more})
        assert channel.asked == ["answered"]
        return b"".join(channel.pieces), cycle.keep_alive

    head = b"HTTP/1.1 200 OK\r\n"
    chunks = b"5\r\nfirst\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"
    new = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    assert asyncio.run(scene("1.1")) == (new, True)
    old = head + b"Connection: close\r\n\r\nfirst" + b"x" * 16
    assert asyncio.run(scene("1.0")) == (old, False)


def test_bytes_are_those_of_a_request_alone_or_not():
    async def scene():
        head, cycle = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n", made(Channel())
        cycle.add(b"body")
        assert cycle.is_all(head + b"body")
        assert not cycle.is_all(head + b"body" + head)
        assert not cycle.is_all(b"body")
        cycle.keep_alive = False
        assert not cycle.is_all(head + b"body")

    asyncio.run(scene())
