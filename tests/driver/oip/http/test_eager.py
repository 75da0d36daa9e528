"""Coroutines that begin at once."""

import asyncio

import pytest

from tightship.driver.oip.http.eager import begun


def test_one_that_does_not_wait_is_done_at_once():
    async def scene():
        done = []

        async def steps():
            done.append(1)

        assert begun(asyncio.get_running_loop(), steps()) is None
        assert done == [1]

    asyncio.run(scene())


def test_one_that_waits_goes_on_as_a_task():
    async def scene():
        loop, said = asyncio.get_running_loop(), []
        first, second = loop.create_future(), loop.create_future()

        async def steps():
            said.append(await first)
            try:
                await second
            except ValueError as error:
                said.append(str(error))
            await asyncio.sleep(0)

        task = begun(loop, steps())
        assert said == []
        first.set_result("first")
        await asyncio.sleep(0)
        second.set_exception(ValueError("second"))
        await task
        assert said == ["first", "second"]

    asyncio.run(scene())


def test_one_that_is_cancelled_hears_of_it():
    async def scene():
        loop = asyncio.get_running_loop()
        never, heard = loop.create_future(), []

        async def steps():
            try:
                await never
            except asyncio.CancelledError:
                heard.append(1)
                raise

        task = begun(loop, steps())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard == [1]

    asyncio.run(scene())
