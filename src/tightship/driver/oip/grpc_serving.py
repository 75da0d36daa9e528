"""The server of the gRPC face: threads that answer, started and ended with the driver."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import NoReturn, TypeVar

import grpc

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.face import Face
from tightship.driver.oip.grpc_calls import GrpcCalls
from tightship.driver.oip.grpc_connections import GrpcConnections, options_for
from tightship.driver.oip.grpc_health import HEALTH_SERVICE, SERVICE, Health
from tightship.driver.oip.limits import FaceLimits
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.rules.regions import RegionError
from tightship.driver.threads import Threads
from tightship.errors import InputError

STREAM = "ModelStreamInfer"
MESSAGE_MORE_BYTES = 1 << 20
"""What a message may have beside the tensors."""
MESSAGE_BYTES_MAX = (1 << 31) - 1
"""The most that gRPC can be told."""

_Keep = Callable[[str], AbstractContextManager[None]]
_Asked = TypeVar("_Asked")
_Unary = Callable[[bytes, grpc.ServicerContext], bytes]


class GrpcServer:
    """Answers calls of gRPC once it is started.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, face: Face, limits: FaceLimits, host: str, port: int) -> None:
        """Listen at an address; port 0 is any that is free.

        Raises:
            InputError: It cannot be listened at.
        """
        self._limits = limits
        received_max = min(limits.body_bytes_max + MESSAGE_MORE_BYTES, MESSAGE_BYTES_MAX)
        self._threads = Threads(limits.connections_max, "tightship-grpc")
        self._server = grpc.server(
            self._threads,
            maximum_concurrent_rpcs=limits.connections_max,
            options=(
                ("grpc.max_receive_message_length", received_max),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
                *options_for(limits),
            ),
        )
        calls, log = GrpcCalls(face), RefusalLog()
        self._connections = GrpcConnections(limits)
        kept = self._connections.calling
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                _unary(kept, _guarded(name, _called(calls, call), log))
            )
            for name, call in calls.unary.items()
        }
        handlers[STREAM] = grpc.stream_stream_rpc_method_handler(
            _stream(kept, _streamed(calls, log))
        )
        health = Health(face, max(1, limits.connections_max // 4))
        health_handlers = {
            "Check": grpc.unary_unary_rpc_method_handler(
                _unary(kept, _guarded("Check", lambda asked, _: health.check(asked), log))
            ),
            "Watch": grpc.unary_stream_rpc_method_handler(_stream(kept, _watched(health, log))),
        }
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(SERVICE, handlers),
                grpc.method_handlers_generic_handler(HEALTH_SERVICE, health_handlers),
            )
        )
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port = self._server.add_insecure_port(where)
        except RuntimeError:
            raise InputError(
                f"The gRPC face cannot listen at `{where}`; name another port."
            ) from None

    def start(self) -> None:
        """Answer from now on."""
        self._server.start()
        self._connections.start(self.port)

    def discard(self) -> None:
        """Listen no more, instead of `start`."""
        self._server.start()  # one that never did keeps its socket
        self._server.stop(None).wait()

    def begin_stop(self) -> None:
        """Take no more calls, and answer those that have begun as long as the limits say."""
        self._ended = self._server.stop(self._limits.drain_s)

    def join(self) -> None:
        """Wait for the end, also of calls that clients have been told are cancelled."""
        self._ended.wait()
        self._threads.shutdown()
        self._connections.stop()


def _unary(kept: _Keep, answer: _Unary) -> _Unary:
    """Keep the connection of a call while it is answered."""

    def answered(request: bytes, context: grpc.ServicerContext) -> bytes:
        with kept(context.peer()):
            return answer(request, context)

    return answered


def _stream(
    kept: _Keep, answer: Callable[[_Asked, grpc.ServicerContext], Iterator[bytes]]
) -> Callable[[_Asked, grpc.ServicerContext], Iterator[bytes]]:
    """Keep the connection of a call while its stream of answers lasts."""

    def answered(asked: _Asked, context: grpc.ServicerContext) -> Iterator[bytes]:
        with kept(context.peer()):
            yield from answer(asked, context)

    return answered


def _called(calls: GrpcCalls, call: Callable[[bytes, Caller], bytes]) -> _Unary:
    return lambda request, context: call(request, _caller(calls, context))


def _guarded(name: str, call: _Unary, log: RefusalLog) -> _Unary:
    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return call(request, context)
        except (OipError, RegionError) as error:
            log.refused(context.peer(), name, str(error))
            _abort(context, grpc.StatusCode[error.code.name], str(error))
        except MemoryError:
            log.refused(context.peer(), name, OUT_OF_MEMORY)
            _abort(context, grpc.StatusCode.UNAVAILABLE, OUT_OF_MEMORY)
        except Exception:  # noqa: BLE001 - a mistake of ours, of which a client is told no more
            log.failed(context.peer(), name)
            _abort(context, grpc.StatusCode.INTERNAL, "internal error")

    return answer


def _caller(calls: GrpcCalls, context: grpc.ServicerContext) -> Caller:
    """Who has made a call, and leaves when it ends: by cancelling it, or at its deadline."""
    caller = calls.caller(context.peer())
    if not context.add_callback(caller.leave):
        caller.leave()
    return caller


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, message: str) -> NoReturn:
    context.abort(code, message)
    raise AssertionError


def _streamed(
    calls: GrpcCalls, log: RefusalLog
) -> Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]:
    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            refused = partial(log.refused, context.peer(), STREAM)
            yield from calls.stream(requests, _caller(calls, context), refused)
        except grpc.RpcError as gone:
            # The client has cancelled the stream, or is gone. grpcio keeps the error in the state
            # of the call, so its traceback, with the last request in it, would be a cycle.
            gone.with_traceback(None)
        except Exception:  # noqa: BLE001 - as above
            log.failed(context.peer(), STREAM)
            _abort(context, grpc.StatusCode.INTERNAL, "internal error")

    return answer


def _watched(
    health: Health, log: RefusalLog
) -> Callable[[bytes, grpc.ServicerContext], Iterator[bytes]]:
    def answer(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        context.add_callback(health.notify)
        try:
            yield from health.watch(request, context.is_active)
        except OipError as error:
            log.refused(context.peer(), "Watch", str(error))
            _abort(context, grpc.StatusCode[error.code.name], str(error))

    return answer
