"""Health service of gRPC (`grpc.health.v1.Health`): `Check`, `List` and `Watch`.

The services `""` and `inference.GRPCInferenceService` are the server; any other is a model by its
name.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.schema import HEALTH, message_classes, parsed

HEALTH_SERVICE = "grpc.health.v1.Health"
SERVICE = "inference.GRPCInferenceService"

_OF_SERVER = frozenset({"", SERVICE})
UNKNOWN_SERVICE = "SERVICE_UNKNOWN"


class Health:
    """Answers calls of the health service, bytes in and out. May be used from several threads."""

    def __init__(self, endpoint: InferenceEndpoint, watchers_max: int) -> None:
        """Answer for an endpoint; at most `watchers_max` clients watch, one thread each."""
        self._endpoint = endpoint
        self._watchers_max = watchers_max
        self._watcher_count = 0
        self._messages = message_classes(HEALTH)

    def is_about_server(self, data: bytes) -> bool:
        """Whether a request asks for the server, and not for a model.

        Raises:
            OipError: The bytes are not a request.
        """
        return self._service(data) in _OF_SERVER

    def check(self, data: bytes) -> bytes:
        """Return whether a service accepts requests.

        Raises:
            OipError: The service is unknown, or the bytes are not a request.
        """
        service = self._service(data)
        status = self._status(service)
        if status == UNKNOWN_SERVICE:
            raise OipError(f"unknown service '{service}'; name a model, or none", Code.NOT_FOUND)
        return self._encoded(status)

    def list(self, data: bytes) -> bytes:
        """Return whether the server and each model accept requests.

        Raises:
            OipError: The bytes are not a request.
        """
        parsed(self._messages["HealthListRequest"], data)
        response = self._messages["HealthListResponse"]()
        for service in ("", SERVICE, *self._endpoint.repository.names):
            response.statuses[service].status = self._status(service)
        return bytes(response.SerializeToString())

    def watch(self, data: bytes, is_active: Callable[[], bool]) -> Iterator[bytes]:
        """Yield whether a service accepts requests, now and at each change.

        Args:
            data: Encoded request.
            is_active: Whether the client still waits; call `notify` when this changes.

        Raises:
            OipError: Too many clients watch, the server ends, or the bytes are not a request.
        """
        service, said = self._service(data), ""
        with self._watching():
            while is_active():
                now = self._next(service, said, is_active)
                if now != said:
                    said = now
                    yield self._encoded(now)
                elif self._endpoint.is_ending:
                    raise OipError("the server has ended", Code.UNAVAILABLE)

    def _next(self, service: str, said: str, is_active: Callable[[], bool]) -> str:
        """Wait for a status other than `said`, for the end of the server or of the client."""

        def is_due() -> bool:
            is_over = self._endpoint.is_ending or not is_active()
            return is_over or self._status(service) != said

        with self._endpoint.changed:
            self._endpoint.changed.wait_for(is_due)
            return self._status(service)

    def notify(self) -> None:
        """Have watching calls check whether their clients are still there."""
        with self._endpoint.changed:
            self._endpoint.changed.notify_all()

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Count a watching client.

        Raises:
            OipError: Too many clients watch.
        """
        with self._endpoint.changed:
            if self._watcher_count >= self._watchers_max:
                raise OipError(
                    f"{self._watchers_max} clients watch already; call Check instead",
                    Code.RESOURCE_EXHAUSTED,
                )
            self._watcher_count += 1
        try:
            yield
        finally:
            with self._endpoint.changed:
                self._watcher_count -= 1

    def _service(self, data: bytes) -> str:
        return str(parsed(self._messages["HealthCheckRequest"], data).service)

    def _status(self, service: str) -> str:
        endpoint = self._endpoint
        if service in _OF_SERVER:
            return "SERVING" if endpoint.is_ready else "NOT_SERVING"
        if service not in endpoint.repository.names:
            return UNKNOWN_SERVICE
        return "SERVING" if endpoint.is_model_ready(service) else "NOT_SERVING"

    def _encoded(self, status: str) -> bytes:
        message = self._messages["HealthCheckResponse"](status=status)
        return bytes(message.SerializeToString())
