"""Inferences that wait for their permits without threads: deadlines, departures, counts."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.driver.oip.endpoint_setting import Setting
from tests.driver.test_run_permits import until
from tightship.driver.oip.http.long_calls import LongCalls, watched
from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.queued_calls import QueuedCalls


class Calls(Setting):
    """An endpoint with its calls by HTTP, whose only permit is taken."""

    def __init__(self, folder, threads):
        super().__init__(folder)
        self.queue = QueuedCalls(self.endpoint.permits)
        self.long = LongCalls(self.calls, self.calls.respond, threads, threads, self.queue)
        assert self.endpoint.permits.take_free()

    def request(self, **parameters):
        said = json.loads(self.body()) | {"parameters": parameters}
        return HttpRequest("POST", "/v2/models/neg/infer", {}, json.dumps(said).encode())

    async def answer(self, request, receive):
        """Return status and text of an answer."""
        caller, watch = self.calls.caller("one", "one:1"), partial(watched, receive)
        found = await asyncio.wait_for(self.long.answer(request, caller, watch), 20)
        return found.status, str(found.parts[0], "utf-8")


@pytest.fixture
def calls(tmp_path):
    with ThreadPoolExecutor(1) as threads:
        found = Calls(tmp_path, threads)
        yield found
        found.queue.close()
        found.close()


async def stays():
    await asyncio.Event().wait()


def test_a_deadline_is_kept_while_a_call_waits(calls):
    status, said = asyncio.run(calls.answer(calls.request(timeout=20_000), stays))
    assert (status, "timeout expired" in said) == (503, True)
    assert (calls.count().success_count, calls.count().fail_count) == (0, 1)


def test_a_client_that_leaves_while_it_waits_never_runs_and_counts(calls):
    async def leaves():
        return {"type": "http.disconnect"}

    status, said = asyncio.run(calls.answer(calls.request(), leaves))
    assert (status, "cancelled" in said) == (503, True)
    assert (calls.count().success_count, calls.count().fail_count) == (0, 1)
    assert calls.count().pending_count == 0


def test_all_that_wait_are_refused_once_the_server_must_end(calls):
    async def ended():
        waiting = [calls.answer(calls.request(), stays) for _ in range(3)]
        asked = asyncio.gather(*waiting)
        await asyncio.sleep(0.05)
        await asyncio.to_thread(calls.endpoint.abandon)
        return await asked

    assert {status for status, _ in asyncio.run(ended())} == {503}


def test_calls_that_wait_take_no_thread_and_are_answered_once_there_is_a_permit(calls):
    async def asked():
        waiting = [calls.answer(calls.request(), stays) for _ in range(20)]
        found = asyncio.gather(*waiting)
        await asyncio.sleep(0.05)
        assert calls.count().pending_count == 20
        calls.endpoint.permits.give_back()
        return await found

    assert {status for status, _ in asyncio.run(asked())} == {200}
    until(lambda: calls.endpoint.permits.is_free)
    assert calls.count().success_count == 20
