"""Inferences over gRPC that wait for run permits without occupying threads."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from tightship.driver.memory.timer_thread import TimerThread
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.queued_calls import Call, QueuedCalls
from tightship.driver.oip.served_model import ServedModel


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """Model that an inference waits to run, and the seconds until its deadline, None for none."""

    served: ServedModel
    left_s: float | None


class WaitingCalls:
    """Queue of inferences, each made on its permit, or without one once it gives up.

    An inference gives up when its caller leaves, when its time is over and when the server must
    end. May be used from several threads.
    """

    def __init__(self, endpoint: InferenceEndpoint, timers: TimerThread) -> None:
        """Create an empty queue for the permits of an endpoint, with timers for deadlines."""
        self._endpoint, self._queue = endpoint, QueuedCalls(endpoint.permits)
        self._timers = timers

    def enter(self, call: Call, caller: Caller, waiting: Waiting) -> bool:
        """Have a call made once its caller has a permit.

        Args:
            call: The call, which raises no exceptions.
            caller: Client, which has the permit when the call is made.
            waiting: What it waits for.

        Returns:
            False if the system has no thread for the call.
        """
        with ExitStack() as left:
            left.enter_context(self._endpoint.waiting(caller))
            until_made = left.pop_all()

        def make() -> None:
            with until_made:
                call()

        served = waiting.served
        number = self._queue.enter(make, caller, served.name, served.metrics)
        if number is None:
            until_made.close()
            return False
        give_up = partial(self._queue.give_up, number)
        until_made.enter_context(caller.noticing(give_up))  # harmless once the call was made
        if waiting.left_s is not None:
            with suppress(RuntimeError):  # without a thread, it ends when it gets its permit
                timer = self._timers.set(waiting.left_s, give_up)
                until_made.callback(self._timers.cancel, timer)
                if not self._queue.has(number):
                    self._timers.cancel(timer)
        return True

    def close(self) -> None:
        """End the threads once the calls have ended that have begun. May be repeated."""
        self._queue.close()
