"""The server of the gRPC face: threads that answer, started and ended with the driver."""

import grpc

from tightship.driver.oip.face import Face
from tightship.driver.oip.grpc.calls import GrpcCalls
from tightship.driver.oip.grpc.connections import GrpcConnections, options_for, room_for
from tightship.driver.oip.grpc.health import HEALTH_SERVICE, SERVICE, Health
from tightship.driver.oip.grpc.methods import Methods
from tightship.driver.oip.grpc.slots import CallSlots
from tightship.driver.oip.limits import FaceLimits
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.threads import Threads
from tightship.errors import InputError

MESSAGE_MORE_BYTES = 1 << 20
"""What a message may have beside the tensors."""
QUIET_S = 0.25
"""Between two looks, as the server ends, at whether a call is still to be answered."""
MESSAGE_BYTES_MAX = (1 << 31) - 1
"""The most that gRPC can be told."""


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
        room = room_for(limits)
        self._threads = Threads(room, "tightship-grpc")
        self._server = grpc.server(
            self._threads,
            maximum_concurrent_rpcs=room,
            options=(
                ("grpc.max_receive_message_length", received_max),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
                *options_for(limits),
            ),
        )
        log = RefusalLog()
        self._slots = CallSlots(limits, log)
        self._connections = GrpcConnections(limits, self._slots)
        methods = Methods(self._slots, log)
        health = Health(face, max(1, limits.connections_max // 4))
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(SERVICE, methods.inference(GrpcCalls(face))),
                grpc.method_handlers_generic_handler(HEALTH_SERVICE, methods.health(health)),
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
        """Wait for the end, also of calls that clients have been told are cancelled.

        Streams that are idle are cancelled before, and calls that came in the moment of the end,
        which the library may neither hand over nor refuse.
        """
        was_quiet = False
        while not self._ended.wait(QUIET_S):
            if was_quiet and self._slots.is_quiet:
                self._server.stop(None)
            was_quiet = self._slots.is_quiet
        self._threads.shutdown()
        self._connections.stop()
