"""Methods of the gRPC services: a call takes a slot, its messages are read, and it is answered.

Methods of one message are registered as those of a stream of messages, which look the same on the
wire: so a call comes here with its headers, and can be ended where its message does not follow.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

import grpc

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.grpc.calls import GrpcCalls, account_of
from tightship.driver.oip.grpc.health import Health
from tightship.driver.oip.grpc.slots import CallSlots, OpenCall, Stage
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.oip.regions import Code, RegionError

STREAM = "ModelStreamInfer"

_Unary = Callable[[bytes, OpenCall, grpc.ServicerContext], bytes]
_Stream = Callable[[Iterator[bytes], OpenCall, grpc.ServicerContext], Iterator[bytes]]
_Handlers = Mapping[str, grpc.RpcMethodHandler]


class Methods:
    """Makes the handlers that grpcio calls, each in a thread for as long as its call lasts."""

    def __init__(self, slots: CallSlots, log: RefusalLog) -> None:
        """Handle as many calls at once as there are slots."""
        self._slots, self._log = slots, log

    def inference(self, calls: GrpcCalls) -> _Handlers:
        """Handlers of the inference service, by the names of its methods."""

        def unary(respond: Callable[[bytes, Caller], bytes]) -> _Unary:
            return lambda message, call, context: respond(message, _caller(calls, call, context))

        def stream(
            messages: Iterator[bytes], call: OpenCall, context: grpc.ServicerContext
        ) -> Iterator[bytes]:
            refused = partial(self._log.refused, call.peer, STREAM)
            caller = _caller(calls, call, context)
            return calls.stream(_received(messages, call), caller, refused)

        unary_calls = {name: self._unary(name, unary(call)) for name, call in calls.unary.items()}
        return {**unary_calls, STREAM: self._stream(STREAM, stream)}

    def health(self, health: Health) -> _Handlers:
        """Handlers of gRPC's health service, by the names of its methods."""

        def watch(
            messages: Iterator[bytes], call: OpenCall, context: grpc.ServicerContext
        ) -> Iterator[bytes]:
            message = _only(messages, call)
            context.add_callback(health.notify)
            return health.watch(message, context.is_active)

        return {
            "Check": self._unary("Check", lambda message, _, __: health.check(message)),
            "List": self._unary("List", lambda message, _, __: health.list(message)),
            "Watch": self._stream("Watch", watch),
        }

    def _unary(self, name: str, respond: _Unary) -> grpc.RpcMethodHandler:
        def handle(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            with self._opened(name, context) as call:
                try:
                    return respond(_only(messages, call), call, context)
                finally:
                    call.enter(Stage.READ)
            return b""  # of no use: the call was cancelled

        return grpc.stream_unary_rpc_method_handler(handle)

    def _stream(self, name: str, respond: _Stream) -> grpc.RpcMethodHandler:
        def handle(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            with self._opened(name, context) as call:
                for response in respond(messages, call, context):
                    call.enter(Stage.READ)
                    yield response
                    call.enter(Stage.ANSWER)

        return grpc.stream_stream_rpc_method_handler(handle)

    @contextmanager
    def _opened(self, name: str, context: grpc.ServicerContext) -> Iterator[OpenCall]:
        """Give a call a slot until its status is sent, and the status of what it raises."""
        peer = context.peer()
        call = OpenCall(name, peer, account_of(peer), context.cancel)
        if not context.add_callback(partial(self._slots.leave, call)):
            self._slots.leave(call)
        try:
            self._slots.take(call)
            yield call
        except grpc.RpcError as gone:
            # The call was cancelled. grpcio keeps the error in the state of the call, so its
            # traceback, with the last message in it, would be a cycle.
            gone.with_traceback(None)
        except (OipError, RegionError) as error:
            self._log.refused(peer, name, str(error))
            _abort(context, grpc.StatusCode[error.code.name], str(error))
        except MemoryError:
            self._log.refused(peer, name, OUT_OF_MEMORY)
            _abort(context, grpc.StatusCode.UNAVAILABLE, OUT_OF_MEMORY)
        except Exception:  # noqa: BLE001 - a mistake of ours, of which a client is told no more
            self._log.failed(peer, name)
            _abort(context, grpc.StatusCode.INTERNAL, "internal error")


def _caller(calls: GrpcCalls, call: OpenCall, context: grpc.ServicerContext) -> Caller:
    """Who has made a call, and leaves when it ends: by cancelling it, or at its deadline."""
    caller = calls.caller(call.peer)
    if not context.add_callback(caller.leave):
        caller.leave()
    return caller


def _only(messages: Iterator[bytes], call: OpenCall) -> bytes:
    """The message of a method that takes one; further ones are not read.

    Raises:
        OipError: There is none.
        RpcError: The call was cancelled.
    """
    message = next(messages, None)
    if message is None:
        raise OipError(f"{call.name} takes one message, and none came", Code.UNIMPLEMENTED)
    call.enter(Stage.ANSWER)
    return message


def _received(messages: Iterator[bytes], call: OpenCall) -> Iterator[bytes]:
    """Messages of a stream, which is idle while it waits for one."""
    call.enter(Stage.NEXT)
    for message in messages:
        call.enter(Stage.ANSWER)
        yield message
        call.enter(Stage.NEXT)


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, message: str) -> NoReturn:
    context.abort(code, message)
    raise AssertionError
