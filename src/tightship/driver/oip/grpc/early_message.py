"""Message of a call, received without a thread that waits for it.

grpcio reads a stream's message when a thread asks for it, and that thread sleeps until the message
has come: two changes of threads in each call. Here grpcio's thread of events calls a function once
the message is there. What that needs of grpcio is not documented. Where it is missing, a thread has
to ask.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import grpc
from grpc import _server

try:
    from grpc._cython.cygrpc import ReceiveMessageOperation
except ImportError:
    ReceiveMessageOperation = None

Arrived = Callable[[bytes | None], None]
"""Called with a message; None if the client sends none, or has cancelled the call."""


def receive(messages: Iterator[bytes], arrived: Arrived) -> bool:
    """Have a function called once the only message of a call has come, by the thread of events.

    Args:
        messages: Iterator that grpcio gives to handlers of streams.
        arrived: The function, which raises nothing and takes little time.

    Returns:
        False if a thread has to ask the iterator instead.
    """
    call: Any = getattr(messages, "_call", None)
    state: Any = getattr(messages, "_state", None)
    reading: Any = getattr(_server, "_receive_message", None)
    is_active: Any = getattr(_server, "_is_rpc_state_active", None)
    token: Any = getattr(_server, "_RECEIVE_MESSAGE_TOKEN", None)
    known = call, state, reading, is_active, token, ReceiveMessageOperation
    if any(each is None for each in known):
        return False
    with state.condition:
        if not is_active(state):
            return False
        read = reading(state, call, None)

        def received(event: Any) -> Any:  # noqa: ANN401  of grpcio
            done = read(event)
            message, state.request = state.request, None
            arrived(message)
            return done

        call.start_server_batch((ReceiveMessageOperation(0),), received)
        state.due.add(token)
    return True


class EventThread(ThreadPoolExecutor):
    """Pool without threads: work is done at once by the thread that submits it.

    As the pool of a method (`experimental_thread_pool`), it has grpcio's thread of events begin its
    calls. grpcio counts a call until the future of its work is done.
    """

    def __init__(self) -> None:
        """Create the pool."""
        super().__init__(1)
        self._work: Future[Any] | None = None

    def submit(
        self,
        fn: Callable[..., Any],
        /,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> "Future[Any]":
        """Do work; it has ended, unless it calls `hold`."""
        work = self._work = Future[Any]()
        fn(*args, **kwargs)
        if self._work is work:
            self.release(work)
        return work

    def hold(self, context: grpc.ServicerContext) -> None:
        """Let the work that is being done end with its call."""
        work, self._work = self._work, None
        if work is not None and not context.add_callback(lambda: self.release(work)):
            self.release(work)

    @staticmethod
    def release(work: "Future[Any]") -> None:
        """Note that work has ended."""
        work.set_result(None)
