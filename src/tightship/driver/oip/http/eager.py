"""Coroutines that begin at once, and become tasks only if they have to wait.

Python 3.12 has such tasks; this is for every version. A coroutine that awaits `Held` needs no task.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from functools import partial
from types import coroutine
from typing import Any, Generic, TypeVar

Steps = Coroutine[Any, Any, None]
GoOn = Callable[[Steps], object]
Value = TypeVar("Value")


class Held(Generic[Value]):
    """Value that a coroutine of `begun` awaits before it has waited for anything else.

    The coroutine goes on within `settle`, without a task and without another turn of the loop.
    """

    __slots__ = ("_go_on", "_value")

    def __await__(self) -> Generator["Held[Value]", None, Value]:
        yield self
        return self._value

    def when_settled(self, go_on: Callable[[], object]) -> None:
        """Call a function once there is a value."""
        self._go_on = go_on

    def settle(self, value: Value) -> None:
        """Have the coroutine go on with a value; once."""
        self._value, go_on = value, self._go_on
        del self._go_on
        go_on()


def begun(
    loop: asyncio.AbstractEventLoop, steps: Steps, go_on: GoOn | None = None
) -> asyncio.Task[None] | None:
    """Run a coroutine until it waits.

    Args:
        loop: Loop of the task.
        steps: The coroutine. Until it waits it has no `asyncio.current_task`.
        go_on: Called with a coroutine that awaited `Held`, once that is settled.

    Returns:
        The task that goes on with it; None if it has ended, or awaits `Held`.
    """
    try:
        awaited = steps.send(None)
    except StopIteration:
        return None
    if go_on is not None and isinstance(awaited, Held):
        awaited.when_settled(partial(go_on, steps))
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
