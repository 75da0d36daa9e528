"""Coroutines that begin at once."""

import asyncio

import pytest

from tightship.driver.oip.http.eager import Held, begun


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


def test_one_that_is_held_goes_on_where_it_is_settled():
    async def scene():
        loop, said = asyncio.get_running_loop(), []
        first, second = Held(), Held()
        later = loop.create_future()

        async def steps():
            said.append(await first)
            said.append(await second)
            await later
            said.append("end")

        tasks = []

        def go_on(rest):
            tasks.append(begun(loop, rest, go_on))

        go_on(steps())
        first.settle("first")
        assert said == ["first"]
        second.settle("second")
        assert said == ["first", "second"]
        later.set_result(None)
        assert tasks[:2] == [None, None]
        await tasks[2]
        assert said[-1] == "end"

    asyncio.run(scene())
