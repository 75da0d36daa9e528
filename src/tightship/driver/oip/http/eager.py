"""Coroutines that begin at once, and become tasks only if they have to wait.

Python 3.12 has such tasks; this is for every version.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import suppress
from types import coroutine
from typing import Any

Steps = Coroutine[Any, Any, None]


def begun(loop: asyncio.AbstractEventLoop, steps: Steps) -> asyncio.Task[None] | None:
    """Run a coroutine until it waits; return the task that goes on with it, None if it has ended.

    Until it waits it has no `asyncio.current_task`.
    """
    try:
        awaited = steps.send(None)
    except StopIteration:
        return None
    return loop.create_task(_gone_on(steps, awaited))


async def _gone_on(steps: Steps, awaited: Any) -> None:  # noqa: ANN401  a future
    await _rest(steps, awaited)


@coroutine
def _rest(steps: Steps, awaited: Any) -> Generator[Any, Any, None]:  # noqa: ANN401
    with suppress(StopIteration):
        while True:
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001  for the coroutine to handle
                awaited = steps.throw(error)
            else:
                awaited = steps.send(value)
