"""Server of gRPC: threads that answer, started and ended with the driver."""

from typing import TYPE_CHECKING

import grpc

from tightship.driver.memory.timer_thread import TimerThread
from tightship.driver.oip.admission.gate import OPEN_ENTRY, Entry
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.grpc.calls import GrpcCalls
from tightship.driver.oip.grpc.connections import GrpcConnections, options_for, room_for
from tightship.driver.oip.grpc.health import HEALTH_SERVICE, SERVICE, Health
from tightship.driver.oip.grpc.methods import Methods
from tightship.driver.oip.grpc.slots import CallSlots
from tightship.driver.oip.grpc.sparing_threads import SparingThreads
from tightship.driver.oip.grpc.waiting_calls import WaitingCalls
from tightship.driver.oip.limits import EndpointLimits
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.errors import InputError

if TYPE_CHECKING:
    from tightship.driver.oip.admission.certificate import Certificate

MESSAGE_MORE_BYTES = 1 << 20
"""Bytes of names and headers that a message may have in addition to its tensors."""
QUIET_S = 0.25
"""Seconds between two checks, while the server ends, of whether calls are still open."""
MESSAGE_BYTES_MAX = (1 << 31) - 1
"""Largest message limit that gRPC accepts, in bytes."""


class GrpcServer:
    """Server of gRPC calls, which it answers once it is started.

    Attributes:
        port: Port that the server listens on.
    """

    def __init__(
        self,
        endpoint: InferenceEndpoint,
        limits: EndpointLimits,
        host: str,
        port: int,
        entry: Entry = OPEN_ENTRY,
    ) -> None:
        """Listen on an address.

        Args:
            endpoint: Inference endpoint.
            limits: Limits on clients.
            host: Address.
            port: Port; 0 takes any free one.
            entry: Rules for clients.

        Raises:
            InputError: The address cannot be listened on.
        """
        self._limits = limits
        received_max = min(limits.body_bytes_max + MESSAGE_MORE_BYTES, MESSAGE_BYTES_MAX)
        room = room_for(limits)
        timers = TimerThread()
        self._threads = SparingThreads(room, "tightship-grpc", timers)
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
        methods = Methods(self._slots, log, entry)
        self._waiting = WaitingCalls(endpoint, timers)
        inference = methods.inference(GrpcCalls(endpoint), self._waiting, self._threads)
        health = Health(endpoint, max(1, limits.connections_max // 4))
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(SERVICE, inference),
                grpc.method_handlers_generic_handler(HEALTH_SERVICE, methods.health(health)),
            )
        )
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if entry.certificate is None:
                self.port = self._server.add_insecure_port(where)
            else:
                self.port = self._server.add_secure_port(where, _credentials(entry.certificate))
        except RuntimeError:
            raise InputError(
                f"The gRPC endpoint cannot listen at `{where}`; name another port."
            ) from None

    def start(self) -> None:
        """Begin to answer calls."""
        self._server.start()
        self._connections.start(self.port)

    def discard(self) -> None:
        """Close the server, which was never started."""
        self._server.start()  # stopping a server that was never started leaks its socket
        self._server.stop(None).wait()
        self._waiting.close()

    def begin_stop(self) -> None:
        """Refuse new calls; those that have begun have `drain_s` seconds to end."""
        self._ended = self._server.stop(self._limits.drain_s)

    def join(self) -> None:
        """Wait until all calls have ended, including those whose clients saw them cancelled.

        Idle streams are cancelled before. So are calls that arrived in the moment of shutdown,
        because grpcio may neither hand them over nor refuse them.
        """
        was_quiet = False
        while not self._ended.wait(QUIET_S):
            if was_quiet and self._slots.is_quiet:
                self._server.stop(None)
            was_quiet = self._slots.is_quiet
        self._waiting.close()
        self._threads.shutdown()
        self._connections.stop()


def _credentials(certificate: "Certificate") -> grpc.ServerCredentials:
    """Return credentials of TLS that follow the files of a certificate."""

    def configuration() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([certificate.pem()])

    used = -1

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal used
        pem = certificate.pem()
        before, used = used, certificate.number
        return None if before == used else grpc.ssl_server_certificate_configuration([pem])

    return grpc.dynamic_ssl_server_credentials(configuration(), fetch)
