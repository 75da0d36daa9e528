"""Answer to a gRPC call of one message whose handler may have returned before."""

from collections.abc import Callable
from concurrent.futures import Executor

import grpc
from grpc import _server

Send = Callable[[bytes | None], None]


class LateAnswer:
    """Answer to a call, sent by any thread without waiting for the client.

    grpcio has handlers that return before they answer. The function that it gives them waits until
    the client has accepted a message, and sends the status after that, which costs another hop of
    threads. So message and status are sent at once, by the function that grpcio uses for methods of
    one response; it is not a documented one. Where it is missing, a thread of a pool waits.
    """

    def __init__(self, context: grpc.ServicerContext, send: Send, executor: Executor) -> None:
        """Answer a call.

        Args:
            context: Context of the call.
            send: Function that the handler got from grpcio.
            executor: Threads that may wait for clients.
        """
        self._is_sent = False
        self._send = send
        self._executor = executor
        self._state = getattr(context, "_rpc_event", None), getattr(context, "_state", None)

    def send(self, message: bytes | None) -> None:
        """End the call with a message, or with None for the status alone. Only the first counts."""
        if self._is_sent:
            return
        self._is_sent = True
        event, state = self._state
        at_once = getattr(_server, "_status", None)
        if at_once is None or event is None or state is None:
            self._executor.submit(self._wait, message)
        else:
            at_once(event, state, message)

    def _wait(self, message: bytes | None) -> None:
        if message is not None:
            self._send(message)
        self._send(None)
