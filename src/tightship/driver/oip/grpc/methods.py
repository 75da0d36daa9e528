"""Handlers of the gRPC methods: a call takes a slot, its messages are read, and it is answered.

Methods of one message are registered as methods of a stream, because grpcio calls the handler of a
stream as soon as the headers have come. So a call whose message does not follow can be ended. Both
kinds look the same on the wire.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import NoReturn

import grpc

from tightship.driver.oip.admission.gate import (
    OPEN_ENTRY,
    AdmissionError,
    Entry,
    Headers,
    joined,
)
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.grpc.calls import GrpcCalls, account_of
from tightship.driver.oip.grpc.health import Health
from tightship.driver.oip.grpc.inference_handler import INFER, InferenceHandler
from tightship.driver.oip.grpc.slots import CallSlots, OpenCall, Stage
from tightship.driver.oip.grpc.waiting_calls import WaitingCalls
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.oip.regions import Code, RegionError
from tightship.driver.oip.request_log import REQUEST_ID, begin

STREAM = "ModelStreamInfer"

PUSHBACK = "grpc-retry-pushback-ms"
"""Trailer of gRPC with the time after which a client may try again."""
_OPEN = frozenset({"ServerLive", "ServerReady", "Check"})
"""Methods that need no token; `Check` only about the server."""
_UNREAD = _OPEN - {"Check"}
"""Methods whose messages have no fields, and are not waited for: a client without a token may send
a large one."""
CHECK_BYTES_MAX = 4096
"""Largest message of `Check`, beyond any name of a model."""

_Unary = Callable[[bytes, OpenCall, grpc.ServicerContext], bytes]
_Stream = Callable[[Iterator[bytes], OpenCall, grpc.ServicerContext], Iterator[bytes]]
_Handlers = Mapping[str, grpc.RpcMethodHandler]


class Methods:
    """Makes the handlers that grpcio calls, each in a thread for as long as its call lasts.

    Inferences are the exception (`InferenceHandler`).
    """

    def __init__(self, slots: CallSlots, log: RefusalLog, entry: Entry = OPEN_ENTRY) -> None:
        """Handle as many calls at once as there are slots, by the rules for clients."""
        self._slots, self._log, self._gate = slots, log, entry.gate
        self._sinks = entry.sinks

    def inference(self, calls: GrpcCalls, waiting: WaitingCalls, executor: Executor) -> _Handlers:
        """Make the handlers of the inference service, by the names of its methods.

        Args:
            calls: Functions that answer.
            waiting: Queue of inferences.
            executor: Threads that may wait for clients.
        """

        def unary(respond: Callable[[bytes, Caller], bytes]) -> _Unary:
            return lambda message, call, context: respond(message, _caller(calls, call, context))

        def stream(
            messages: Iterator[bytes], call: OpenCall, context: grpc.ServicerContext
        ) -> Iterator[bytes]:
            refused = partial(self._log.refused, call.client, STREAM)
            caller = _caller(calls, call, context)
            return calls.stream(
                _received(messages, call), caller, partial(self._count, call), refused
            )

        opened = partial(self._opened, INFER, takes_slot=False)
        caller = partial(_caller, calls)
        handler = InferenceHandler(calls, opened, caller, self._slots, waiting, executor)
        unary_calls = {name: self._unary(name, unary(call)) for name, call in calls.unary.items()}
        return {
            **unary_calls,
            INFER: handler.method(),
            STREAM: self._stream(STREAM, stream),
        }

    def health(self, health: Health) -> _Handlers:
        """Make the handlers of gRPC's health service, by the names of its methods."""

        def watch(
            messages: Iterator[bytes], call: OpenCall, context: grpc.ServicerContext
        ) -> Iterator[bytes]:
            message = _only(messages, call)
            context.add_callback(health.notify)
            return health.watch(message, context.is_active)

        def check(message: bytes, call: OpenCall, context: grpc.ServicerContext) -> bytes:
            if len(message) > CHECK_BYTES_MAX:
                raise OipError(f"a message of Check has at most {CHECK_BYTES_MAX} bytes")
            if self._gate is not None and not health.is_about_server(message):
                # The call keeps its account, because its slot is counted for that.
                self._gate.admit(call.account, _headers(context), is_open=False)
            return health.check(message)

        return {
            "Check": self._unary("Check", check),
            "List": self._unary("List", lambda message, _, __: health.list(message)),
            "Watch": self._stream("Watch", watch),
        }

    def _unary(self, name: str, respond: _Unary) -> grpc.RpcMethodHandler:
        def handle(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            with self._opened(name, context) as call:
                try:
                    message = b"" if name in _UNREAD else _only(messages, call)
                    return call.sent(respond(message, call, context))
                finally:
                    call.enter(Stage.READ)
            return b""  # gRPC discards it, because the call was cancelled

        return grpc.stream_unary_rpc_method_handler(handle)

    def _stream(self, name: str, respond: _Stream) -> grpc.RpcMethodHandler:
        def handle(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            with self._opened(name, context) as call:
                for response in respond(messages, call, context):
                    call.enter(Stage.READ)
                    yield call.sent(response)
                    call.enter(Stage.ANSWER)

        return grpc.stream_stream_rpc_method_handler(handle)

    @contextmanager
    def _opened(
        self, name: str, context: grpc.ServicerContext, *, takes_slot: bool = True
    ) -> Iterator[OpenCall]:
        """Give a call a slot until its status is sent, and turn an exception into its status."""
        peer = context.peer()
        call = OpenCall(name, peer, account_of(peer), context.cancel)
        if not context.add_callback(partial(self._slots.leave, call)):
            self._slots.leave(call)
        with self._logged(call, context) as request_id:
            try:
                self._admit(call, context, is_open=name in _OPEN)
                if takes_slot:
                    self._slots.take(call)
                yield call
            except grpc.RpcError as gone:
                # The call was cancelled. grpcio keeps the error in the state of the call, so its
                # traceback, which refers to the last message, would be a reference cycle.
                gone.with_traceback(None)
            except (OipError, RegionError) as error:
                if isinstance(error, AdmissionError) and error.retry_s is not None:
                    _tell_when(context, error.retry_s, request_id)
                self._log.refused(call.client, name, str(error), request_id)
                _abort(context, grpc.StatusCode[error.code.name], str(error))
            except MemoryError:
                self._log.refused(call.client, name, OUT_OF_MEMORY, request_id)
                _abort(context, grpc.StatusCode.UNAVAILABLE, OUT_OF_MEMORY)
            except Exception:  # noqa: BLE001 - an error of ours; clients get no details
                self._log.failed(call.client, name, request_id)
                _abort(context, grpc.StatusCode.INTERNAL, "internal error")
            finally:
                call.use.end()

    def _admit(self, call: OpenCall, context: grpc.ServicerContext, *, is_open: bool) -> None:
        """Admit a call, and find its client, which may be behind a proxy, and its account.

        Raises:
            AdmissionError: The call is not admitted.
        """
        if self._gate is None:
            return
        headers, address = _headers(context), account_of(call.peer)
        client = self._gate.client_of(address, headers)
        if client != address:
            call.client = f"grpc:{client}:0"
        call.account = client
        call.account = self._gate.identify(client, headers, is_open=is_open)
        if not is_open and call.name != STREAM:  # of a stream, each request counts
            self._count(call)
        call.use = self._gate.begin(call.account, is_open=is_open)

    def _count(self, call: OpenCall) -> None:
        """Count a request of a call.

        Raises:
            AdmissionError: The client has made too many, or with too many bytes.
        """
        if self._gate is not None:
            self._gate.count(call.account)

    @contextmanager
    def _logged(self, call: OpenCall, context: grpc.ServicerContext) -> Iterator[str]:
        """Log a call once it has ended; the block gets the id of the call, empty without a log."""
        if not self._sinks:
            yield ""
            return
        exchange = call.exchange = begin(call.name, _headers(context), self._sinks)
        context.set_trailing_metadata(((REQUEST_ID, exchange.request_id),))
        try:
            yield exchange.request_id
        finally:
            exchange.client, exchange.account = call.client, call.account
            code = context.code()
            is_over = call.is_over and code is None
            exchange.status = "CANCELLED" if is_over else "OK" if code is None else code.name
            exchange.end()


def _tell_when(context: grpc.ServicerContext, retry_s: float, request_id: str) -> None:
    """Tell a client, as gRPC's retries expect it, when it may call again."""
    trailers = [(PUSHBACK, str(ceil(retry_s * 1000)))]
    trailers += [(REQUEST_ID, request_id)] if request_id else []
    context.set_trailing_metadata(tuple(trailers))


def _headers(context: grpc.ServicerContext) -> Headers:
    """Return the headers of a call, except those that are not text."""
    pairs = context.invocation_metadata()
    return joined((key, value) for key, value in pairs if isinstance(value, str))


def _caller(calls: GrpcCalls, call: OpenCall, context: grpc.ServicerContext) -> Caller:
    """Return the caller of a call; it leaves when the call is cancelled or its deadline passes."""
    caller = calls.caller(call.account, call.peer)
    if not context.add_callback(caller.leave):
        caller.leave()
    return caller


def _only(messages: Iterator[bytes], call: OpenCall) -> bytes:
    """Read the message of a method that takes one; further messages are not read.

    Raises:
        OipError: No message came.
        RpcError: The call was cancelled.
    """
    message = next(messages, None)
    if message is None:
        raise OipError(f"{call.name} takes one message, and none came", Code.UNIMPLEMENTED)
    call.enter(Stage.ANSWER)
    return call.received(message)


def _received(messages: Iterator[bytes], call: OpenCall) -> Iterator[bytes]:
    """Yield the messages of a stream; the call counts as idle while it waits for the next."""
    call.enter(Stage.NEXT)
    for message in messages:
        call.enter(Stage.ANSWER)
        yield call.received(message)
        call.enter(Stage.NEXT)


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, message: str) -> NoReturn:
    context.abort(code, message)
    raise AssertionError
