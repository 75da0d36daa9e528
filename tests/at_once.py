"""Calls of a function on several threads at once."""

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any


def at_once(call: Callable[..., Any], arguments: Iterable[Any]) -> list[Any]:
    """Call a function with each argument on a thread of its own; wait for all of them.

    Returns:
        Results in the order of the arguments; the first error of a call is raised.
    """
    given = list(arguments)
    results: dict[int, Any] = {}
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = call(given[index])
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [Thread(target=run, args=(index,)) for index in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[index] for index in range(len(given))]
