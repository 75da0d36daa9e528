"""Deadlines that are moved, dropped, or pass."""

import asyncio
import weakref

import pytest

from tightship.driver.oip.http.deadline import Deadline


@pytest.mark.parametrize("before_s", [None, 0.001, 60.0])
def test_a_deadline_passes_once_at_its_last_time(before_s):
    async def scene():
        loop = asyncio.get_running_loop()
        passed, times = asyncio.Event(), []
        deadline = Deadline(loop, lambda: (times.append(loop.time()), passed.set()))
        if before_s is not None:
            deadline.set(before_s)
        begin = loop.time()
        deadline.set(0.05)
        await asyncio.wait_for(passed.wait(), 20)
        await asyncio.sleep(0.01)
        assert len(times) == 1
        assert times[0] >= begin + 0.05
        deadline.close()

    asyncio.run(scene())


def test_one_that_is_dropped_or_closed_does_not_pass():
    class Owner:
        def __init__(self, loop):
            self.passed = 0
            self.deadline = Deadline(loop, self.late)

        def late(self):
            self.passed += 1

    async def scene():
        owners = [Owner(asyncio.get_running_loop()) for _ in range(2)]
        for each in owners:
            each.deadline.set(0.01)
        owners[0].deadline.drop()
        owners[1].deadline.close()
        await asyncio.sleep(0.05)
        assert [each.passed for each in owners] == [0, 0]
        owners[0].deadline.close()
        gone = [weakref.ref(each) for each in owners]
        del owners, each
        assert [each() for each in gone] == [None, None]  # without a collection of cycles

    asyncio.run(scene())
