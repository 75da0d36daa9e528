"""HTTP calls of the protocol: requests and responses as values, without a socket."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from time import monotonic_ns

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.browsers import ANY_HOST, AllowedOrigins
from tightship.driver.oip.http.message import (
    HEADER_LENGTH,
    HttpRequest,
    HttpResponse,
    error_response,
)
from tightship.driver.oip.http.paths import TARGETS_MAX, VERSIONED, Paths, Values
from tightship.driver.oip.http.tables import (
    model_calls,
    named,
    region_calls,
    repository_calls,
    server_calls,
    settings_calls,
)
from tightship.driver.oip.http.turn import TurnTarget
from tightship.driver.oip.infer_request import (
    REPEATED_BYTES_MAX,
    InferRequest,
    decode,
    has_regions,
)
from tightship.driver.oip.infer_response import Answers, InferResponse, Outputs, encode
from tightship.driver.oip.inference import Asked
from tightship.driver.oip.joined_run import Key, key_of
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.quick_runs import QuickRuns
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.region_calls import Memory
from tightship.driver.oip.regions import Code, RegionError
from tightship.driver.oip.served_model import ServedModel
from tightship.errors import TightshipError

BODY_SMALL_BYTES = 64 << 10
FORM_BYTES_MAX = 512
"""Largest JSON header by which a request is known to be as quick as those before."""


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """Inference that was read.

    Attributes:
        request: The request, with the inference.
        left_s: Seconds until its deadline; None without one.
    """

    request: HttpRequest
    served: ServedModel
    left_s: float | None


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
        self._quick = QuickRuns()
        self._turn_targets: dict[str, TurnTarget] = {}
        self._answers: Answers[HttpResponse] = Answers()
        endpoint.repository.on_withdrawn.append(lambda _: self._forget())

    def _forget(self) -> None:
        """Forget how long inferences took, because a model has changed."""
        self._quick.forget()
        self._turn_targets.clear()

    def caller(self, account: str, client: str) -> Caller:
        """Create the caller of a connection."""
        return Caller(self._endpoint.permits, account, client)

    def is_long(self, asked: HttpRequest, caller: Caller | None = None) -> bool:
        """Whether answering may take long: loading a model, or running one that is not quick.

        For a quick run, the caller reserves a permit; without a free one the run may have to wait.
        """
        if asked.method != "POST" or not is_work(asked):
            return False
        return len(asked.body) > BODY_SMALL_BYTES or not self.is_quick(asked, caller)

    def is_quick(self, asked: HttpRequest, caller: Caller | None) -> bool:
        """Whether an inference was quick the last times and has a permit, as from `is_long`."""
        if not (self._quick.have(asked.target) or self._quick.have(_form(asked))):
            return False
        return self._endpoint.is_free if caller is None else caller.reserve()

    def read(self, asked: HttpRequest) -> HttpRequest:
        """Return an inference that was answered before, decoded."""
        return replace(asked, caller=None, inference=self._read(asked))

    def waiting(self, caller: Caller) -> AbstractContextManager[None]:
        """Return a block within which a caller leaves once the server must end."""
        return self._endpoint.waiting(caller)

    def turn_target(self, asked: HttpRequest) -> TurnTarget | None:
        """Return what is known of a target whose inferences may be joined; None for others."""
        return self._turn_targets.get(asked.target) if asked.method == "POST" else None

    def joinable(self, asked: HttpRequest, caller: Caller) -> tuple[HttpRequest, Key, int] | None:
        """Read an inference that may be joined with others: its shapes and rows beside it.

        Returns:
            None for one that is refused, has a time limit, or has tensors in regions, where its
            run is bound once and repeated.
        """
        if self._origins.refusal(asked.headers) is not None:
            return None
        try:
            if not asked.has_small_header:
                return None
            read = self._read(asked)
        except (OipError, RegionError):
            return None
        inputs = read.inputs
        is_timed = read.timeout_s is not None
        if is_timed or has_regions(read) or not (inputs and inputs[0].shape):
            return None
        return replace(asked, caller=caller, inference=read), key_of(inputs), inputs[0].shape[0]

    def are_planned(self, target: TurnTarget, rows: Mapping[Key, int]) -> bool:
        """Whether batches of so many rows would run now without being planned first."""
        return all(self._endpoint.is_planned(target.served, *each) for each in rows.items())

    def inference(self, asked: HttpRequest) -> Inference | None:
        """Read an inference that may wait for its permit without a thread.

        Returns:
            None for other calls: those that take long to read, are joined with others, or are
            refused.
        """
        found = self._paths.find(asked.target)
        if found is None or asked.method != "POST" or found[0].get("POST") != self._infer:
            return None
        try:
            if not asked.has_small_header:
                return None
            served = self._endpoint.repository.served(*named(found[1]))
            request = self._read(asked)
        except (OipError, RegionError):
            return None
        if self._endpoint.joins(served):
            return None
        return Inference(replace(asked, inference=request), served, request.left_s(asked.came_ns))

    def respond(self, asked: HttpRequest, caller: Caller | None = None) -> HttpResponse:
        """Return the response to a request; a refusal has its reason as `{"error": ...}`.

        Args:
            asked: Request.
            caller: Client of the request; None for one that stays.
        """
        try:
            if asked.method == "HEAD":
                return replace(self.respond(replace(asked, method="GET"), caller), has_body=False)
            if (reason := self._origins.refusal(asked.headers)) is not None:
                return error_response(403, reason)
            is_its = asked.caller is caller
            return self._paths.answer(asked if is_its else replace(asked, caller=caller))
        except (OipError, RegionError, MemoryError) as error:
            return _refused(error)

    def again(self, known: HttpRequest) -> HttpResponse | None:
        """Answer an inference that was answered before, and whose bytes have come again.

        Its headers were accepted then. Of its tensors in regions, only the contents may differ.

        Returns:
            None if it is to be answered by `respond`: it was not quick the last times, no permit is
            free, tensors are elsewhere, or it fails.
        """
        target, inference = known.target, known.inference
        if inference is None or not self._quick.have(target):
            return None
        repeated = self._endpoint.infer_again(inference, monotonic_ns())
        if repeated is None:
            return None
        served, outputs, took_ns = repeated
        self._quick.note(served, target, took_ns)
        response = self._answers.find(outputs)
        if response is None:
            response = _response(encode(served.name, served.version, inference.identifier, outputs))
            self._answers.keep(outputs, response)
        served.metrics.transfer(len(known.body), response.size_bytes)
        return response

    def respond_together(self, asked: Sequence[HttpRequest]) -> list[HttpResponse]:
        """Return the responses to inferences of one target, from `joinable`, by one run."""
        found = self._paths.find(asked[0].target)
        assert found is not None, asked[0].target
        name, version = named(found[1])
        given = [
            Asked(each.inference, each.came_ns, each.caller)
            for each in asked
            if each.inference is not None and each.caller is not None
        ]
        began = monotonic_ns()
        try:
            served, results = self._endpoint.infer_together(name, version, given)
        except OipError as error:
            return [_refused(error)] * len(asked)
        target = self._turn_targets.get(asked[0].target)
        if target is not None:
            target.gain.note(monotonic_ns() - began, len(asked))
        return [self._told(served, *pair) for pair in zip(asked, results, strict=True)]

    def _told(
        self,
        served: ServedModel,
        asked: HttpRequest,
        found: Outputs | TightshipError | MemoryError,
    ) -> HttpResponse:
        """Return the response to an inference that was joined."""
        try:
            if isinstance(found, TightshipError | MemoryError):
                raise found
            identifier = "" if asked.inference is None else asked.inference.identifier
            response = _response(encode(served.name, served.version, identifier, found))
        except (OipError, RegionError, MemoryError) as error:
            return _refused(error)
        served.metrics.transfer(len(asked.body), response.size_bytes)
        return response

    def _infer(self, request: HttpRequest, values: Values) -> HttpResponse:
        asked = request.inference or self._read(request)
        name, version = named(values)
        waits = request.caller is None or not request.caller.has_permit
        found = self._endpoint.infer(name, version, asked, request.came_ns, request.caller)
        if found.served.may_join and not (waits or has_regions(asked)):
            self._note_alone(request.target, found.served, found.took_ns)
        key = request.target if found.served.is_constant_time else _form(request)
        self._quick.note(found.served, key, found.took_ns)
        response = self._answers.find(found.outputs)
        if response is None:
            version = found.served.version
            response = _response(encode(name, version, asked.identifier, found.outputs))
            self._answers.keep(found.outputs, response)
        found.served.metrics.transfer(len(request.body), response.size_bytes)
        return response

    def _note_alone(self, target: str, served: ServedModel, took_ns: int) -> None:
        """Note how long an inference took that was not joined, though its model's may be."""
        known = self._turn_targets.get(target)
        if known is None or known.served is not served:
            rows_max = self._endpoint.batch_max(served)
            if not rows_max:
                return
            if len(self._turn_targets) >= TARGETS_MAX:
                self._turn_targets.clear()
            known = TurnTarget(served, rows_max)
            self._turn_targets[target] = known
        known.gain.note(took_ns, 1)

    def _read(self, request: HttpRequest) -> InferRequest:
        """Decode an inference; requests that are small and have no raw part are kept.

        Raises:
            OipError: It is not valid.
        """
        body, header_bytes = request.content(self._body_bytes_max), request.header_bytes
        is_small = header_bytes is None and len(body) <= REPEATED_BYTES_MAX
        return _decoded(bytes(body)) if is_small else decode(body, header_bytes)


def _refused(error: OipError | RegionError | MemoryError) -> HttpResponse:
    """Return the response of a request that fails by an error."""
    if isinstance(error, MemoryError):
        return error_response(Code.UNAVAILABLE.http_status, OUT_OF_MEMORY)
    return error_response(error.code.http_status, str(error))


def _form(asked: HttpRequest) -> tuple[str, bytes] | None:
    """Return what says names and shapes of an inference: target and JSON header, if it is small."""
    said = asked.headers.get(HEADER_LENGTH, "")
    if not (said.isascii() and said.isdigit() and len(said) < 5 and int(said) <= FORM_BYTES_MAX):
        return None
    return asked.target, bytes(asked.body[: int(said)])


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


def is_inference(request: HttpRequest) -> bool:
    """Whether a call runs a model."""
    return request.method == "POST" and request.target.partition("?")[0].endswith("/infer")


def changes_models(asked: HttpRequest) -> bool:
    """Whether a call loads or unloads a model, which may take minutes."""
    return asked.target.partition("?")[0].endswith(("/load", "/unload"))
