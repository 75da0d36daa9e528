"""HTTP calls of the protocol: requests and responses as values, without a socket."""

import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from time import monotonic_ns

from tightship.driver.oip.cached_inference import CachedInference
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.browsers import ANY_HOST, AllowedOrigins
from tightship.driver.oip.http.message import (
    HEADER_LENGTH,
    HttpRequest,
    HttpResponse,
    error_response,
)
from tightship.driver.oip.http.paths import VERSIONED, Paths, Values
from tightship.driver.oip.http.tables import (
    model_calls,
    named,
    region_calls,
    repository_calls,
    server_calls,
    settings_calls,
)
from tightship.driver.oip.infer_request import REPEATED_BYTES_MAX, InferRequest, decode
from tightship.driver.oip.infer_response import Answers, InferResponse, encode
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.region_calls import Memory
from tightship.driver.oip.regions import Code, RegionError
from tightship.driver.oip.served_model import ServedModel

QUICK_NS = 500_000
"""Duration below which calls are answered on the event loop: another thread costs 100 us."""

BRIEF_NS = 50_000_000
"""Duration below which a run may continue for a client that is gone."""
BODY_SMALL_BYTES = 64 << 10
TARGETS_MAX = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """Decoded inference request with its target and time of arrival."""

    target: str
    name: str
    version: str | None
    request: InferRequest
    came_ns: int
    method: str = "POST"


Asked = HttpRequest | Inference
"""Request to answer, raw or decoded earlier."""


class HttpCalls:
    """Answers requests. May be used from several threads."""

    def __init__(
        self,
        endpoint: InferenceEndpoint,
        body_bytes_max: int,
        monitor: Monitor | None = None,
        *,
        origins: AllowedOrigins = ANY_HOST,
    ) -> None:
        """Answer for an endpoint.

        Args:
            endpoint: Inference endpoint.
            body_bytes_max: Largest unpacked body.
            monitor: Contents of the page; None for no page.
            origins: Names by which browsers may reach the server.
        """
        self._endpoint = endpoint
        self._origins = origins
        self._paths = Paths(
            {
                f"{VERSIONED}/infer": {"POST": self._infer},
                **server_calls(endpoint, monitor),
                **model_calls(endpoint),
                **repository_calls(endpoint, body_bytes_max),
                **settings_calls(body_bytes_max),
                **region_calls(endpoint, Memory.SYSTEM, body_bytes_max),
                **region_calls(endpoint, Memory.CUDA, body_bytes_max),
            }
        )
        self._body_bytes_max = body_bytes_max
        self._took_ns: dict[str, int] = {}
        self._answers: Answers[HttpResponse] = Answers()
        self._repeated: dict[bytes, Inference] = {}
        endpoint.repository.on_withdrawn.append(lambda _: self._took_ns.clear())

    def caller(self, account: str, client: str) -> Caller:
        """Create the caller of a connection."""
        return Caller(self._endpoint.permits, account, client)

    def is_long(self, asked: Asked, caller: Caller | None = None) -> bool:
        """Whether answering may take long: loading a model, or running one that is not quick.

        For a quick run, the caller reserves a permit; without a free one the run may have to wait.
        """
        is_small = True
        if isinstance(asked, HttpRequest):
            if asked.method != "POST" or not is_work(asked):
                return False
            is_small = len(asked.body) <= BODY_SMALL_BYTES
        is_quick = self._took_ns.get(asked.target, sys.maxsize) < QUICK_NS and is_small
        if not is_quick:
            return True
        return not (self._endpoint.is_free if caller is None else caller.reserve())

    def respond(self, asked: Asked, caller: Caller | None = None) -> HttpResponse:
        """Return the response to a request; a refusal has its reason as `{"error": ...}`.

        Args:
            asked: Request.
            caller: Client of the request; None for one that stays.
        """
        try:
            if isinstance(asked, Inference):
                return self._run(asked, caller)
            if asked.method == "HEAD":
                return replace(self.respond(replace(asked, method="GET"), caller), has_body=False)
            if (reason := self._origins.refusal(asked.headers)) is not None:
                return error_response(403, reason)
            return self._paths.answer(replace(asked, caller=caller))
        except (OipError, RegionError) as error:
            return error_response(error.code.http_status, str(error))
        except MemoryError:
            return error_response(Code.UNAVAILABLE.http_status, OUT_OF_MEMORY)

    def _infer(self, request: HttpRequest, values: Values) -> HttpResponse:
        body, header_bytes = request.content(self._body_bytes_max), request.header_bytes
        is_small = header_bytes is None and len(body) <= REPEATED_BYTES_MAX
        asked = _decoded(bytes(body)) if is_small else decode(body, header_bytes)
        inference = Inference(request.target, *named(values), asked, request.came_ns)
        return self._run(inference, request.caller)

    def _run(self, inference: Inference, caller: Caller | None) -> HttpResponse:
        began = monotonic_ns()
        name, request = inference.name, inference.request
        found = self._endpoint.infer(name, inference.version, request, inference.came_ns, caller)
        self._note(inference.target, found.served, monotonic_ns() - began)
        response = self._answers.find(found.outputs)
        if response is None:
            version = found.served.version
            response = _response(encode(name, version, request.identifier, found.outputs))
            self._answers.keep(found.outputs, response)
        return response

    def remember(self, data: bytes, request: HttpRequest) -> None:
        """Make the bytes of a successful request recognizable to `known`."""
        is_small = len(request.body) <= REPEATED_BYTES_MAX
        is_plain = not {HEADER_LENGTH, "content-encoding", "origin"} & request.headers.keys()
        found = self._paths.find(request.target)
        if not (is_small and is_plain and request.target in self._took_ns) or found is None:
            return
        asked = _decoded(bytes(request.body))
        if len(self._repeated) >= TARGETS_MAX:
            self._repeated.clear()
        name, version = named(found[1])
        self._repeated[data] = Inference(request.target, name, version, asked, request.came_ns)

    def known(self, data: bytes) -> Inference | None:
        """Return the inference that these bytes were decoded to before, if any."""
        found = self._repeated.get(data)
        return None if found is None else replace(found, came_ns=monotonic_ns())

    def cached(self, inference: Inference) -> tuple[CachedInference, bytes] | None:
        """Return the cached inference and its encoded response; None if it cannot be repeated.

        Long ones cannot: while they run, a client that disconnects would go unnoticed.
        """
        if self._took_ns.get(inference.target, sys.maxsize) >= BRIEF_NS:
            return None
        try:
            cached = self._endpoint.cached(inference.name, inference.version, inference.request)
        except OipError:
            return None
        response = None if cached is None else self._answers.find(cached.outputs)
        if cached is None or response is None:
            return None
        return cached, b"".join([response.head, b"\r\n", *response.parts])

    def is_current(self, inference: Inference, cached: CachedInference) -> bool:
        """Whether a request still means the model and the regions of its cached inference."""
        return self._endpoint.still_has(cached, inference.name, inference.version)

    def _note(self, target: str, served: ServedModel, duration_ns: int) -> None:
        is_alike = served.is_constant_time
        if target not in self._took_ns and len(self._took_ns) >= TARGETS_MAX:
            self._took_ns.clear()
        self._took_ns[target] = duration_ns if is_alike else sys.maxsize


@lru_cache(maxsize=256)
def _decoded(body: bytes) -> InferRequest:
    return decode(body, None)


def _response(found: InferResponse) -> HttpResponse:
    is_binary = found.header_bytes is not None
    content_type = "application/octet-stream" if is_binary else "application/json"
    return HttpResponse(200, found.parts, content_type, found.header_bytes)


def is_work(request: HttpRequest) -> bool:
    """Whether a call runs, loads or unloads a model."""
    path = request.target.partition("?")[0]
    return path.endswith(("/infer", "/load", "/unload"))


def changes_models(asked: Asked) -> bool:
    """Whether a call loads or unloads a model, which may take minutes."""
    return asked.target.partition("?")[0].endswith(("/load", "/unload"))
