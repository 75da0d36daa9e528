"""Calls as HTTP has them: requests and responses as values, without a socket."""

from dataclasses import dataclass, replace
from functools import lru_cache
from time import monotonic_ns
from urllib.parse import unquote

from tightship.driver.oip.answers import Answers
from tightship.driver.oip.browsers import may_ask
from tightship.driver.oip.face import LOG_SETTINGS, TRACE_SETTINGS, Face, Said, check_unchanged
from tightship.driver.oip.http_message import (
    HEADER_LENGTH,
    HttpRequest,
    HttpResponse,
    error_response,
    json_response,
)
from tightship.driver.oip.infer_request import REPEATED_BYTES_MAX, InferRequest, decode
from tightship.driver.oip.infer_response import InferResponse, encode
from tightship.driver.oip.json_fields import field, optional, parse
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.page import page
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.region_calls import Memory, register_cuda, status, unregister
from tightship.driver.oip.repository import VERSION
from tightship.driver.oip.standing import Standing
from tightship.driver.rules.regions import Code, Region, RegionError

QUICK_NS = 500_000
"""Calls that take less are answered where they are read: a thread of their own costs 100 us."""

BODY_SMALL_BYTES = 64 << 10
TARGETS_MAX = 1024

FOREIGN = "pages of other servers may not ask; others call this one by an address or localhost"

MEMORIES = {"systemsharedmemory": Memory.SYSTEM, "cudasharedmemory": Memory.CUDA}


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """An inference that is asked for at a target, as it was read, and when it came."""

    target: str
    name: str
    version: str | None
    request: InferRequest
    came_ns: int
    method: str = "POST"


Asked = HttpRequest | Inference
"""What is to be answered: as it came, or as it was read before."""


class HttpCalls:
    """Answers requests. May be used from several threads."""

    def __init__(
        self,
        face: Face,
        body_bytes_max: int,
        monitor: Monitor | None = None,
        *,
        is_local: bool = False,
    ) -> None:
        """Answer for a face.

        Args:
            face: Of the protocol.
            body_bytes_max: Of a request once it is unpacked.
            monitor: What the page shows; None for no page.
            is_local: Whether nobody but this machine can ask.
        """
        self._face = face
        self._is_local = is_local
        self._monitor = monitor
        self._body_bytes_max = body_bytes_max
        self._quick: dict[str, bool] = {}
        self._answers: Answers[HttpResponse] = Answers()
        self._repeated: dict[bytes, Inference] = {}
        face.repository.on_withdrawn.append(lambda _: self._quick.clear())

    def is_long(self, asked: Asked) -> bool:
        """Whether answering may take long: loading a model, or running one that is not quick."""
        is_small = True
        if isinstance(asked, HttpRequest):
            if asked.method != "POST" or not is_work(asked):
                return False
            is_small = len(asked.body) <= BODY_SMALL_BYTES
        is_quick = self._quick.get(asked.target, False) and is_small
        return not (is_quick and self._face.is_free)

    def respond(self, asked: Asked) -> HttpResponse:
        """The response to a request; a refused one has its reason as `{"error": ...}`."""
        try:
            if isinstance(asked, Inference):
                return self._run(asked)
            if asked.method == "HEAD":
                return replace(self.respond(replace(asked, method="GET")), has_body=False)
            if not may_ask(asked.headers, is_local=self._is_local):
                return error_response(403, FOREIGN)
            return self._answer(asked)
        except (OipError, RegionError) as error:
            return error_response(error.code.http_status, str(error))
        except MemoryError:
            return error_response(Code.UNAVAILABLE.http_status, OUT_OF_MEMORY)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        segments = _segments(request)
        match (request.method, *segments):
            case (_, "v2", "models", *rest):
                return self._model_call(request, rest)
            case ("POST", "v2", "repository", *rest):
                return self._repository_call(request, rest)
            case (_, "v2", "systemsharedmemory" | "cudasharedmemory", *_):
                return self._region_call(request, segments[1:])
            case (_, "v2", "trace", "setting") | (_, "v2", "logging"):
                return self._settings_call(request, segments[1])
            case ("GET", *rest):
                return self._server_call(request, rest)
        raise _unknown(request)

    def _server_call(self, request: HttpRequest, segments: list[str]) -> HttpResponse:
        face = self._face
        match segments:
            case [""] if self._monitor is not None:
                return HttpResponse(parts=(page(),), content_type="text/html; charset=utf-8")
            case ["status"] if self._monitor is not None:
                return json_response(self._monitor.status())
            case ["metrics"]:
                monitor = self._monitor
                text = face.metrics() + ("" if monitor is None else monitor.metrics())
                return HttpResponse(
                    parts=(text.encode(),), content_type="text/plain; version=0.0.4"
                )
            case ["v2"]:
                return json_response(face.metadata())
            case ["v2", "health", "live"]:
                return HttpResponse()
            case ["v2", "health", "ready"]:
                return HttpResponse(400 if face.is_draining else 200)
        raise _unknown(request)

    def _settings_call(self, request: HttpRequest, kind: str) -> HttpResponse:
        if request.method == "POST":
            check_unchanged(parse(request.content(self._body_bytes_max)), kind)
        return json_response(TRACE_SETTINGS if kind == "trace" else LOG_SETTINGS)

    def _model_call(self, request: HttpRequest, rest: list[str]) -> HttpResponse:
        """`[NAME[/versions/V]]/CALL`."""
        face = self._face
        if request.method == "GET" and rest == ["stats"]:
            return json_response(face.statistics())
        name, version, rest = _named(rest)
        match (request.method, *rest):
            case ("POST", "infer"):
                return self._infer(request, name, version)
            case ("GET", "ready"):
                return HttpResponse(200 if face.repository.is_ready(name, version) else 400)
            case ("GET", *what):
                return json_response(self._said_of(request, name, version, what))
        raise _unknown(request)

    def _said_of(
        self, request: HttpRequest, name: str, version: str | None, what: list[str]
    ) -> Said:
        match what:
            case []:
                return self._face.model_metadata(name, version)
            case ["config"]:
                return self._face.model_config(name, version)
            case ["stats"]:
                return self._face.statistics(name, version)
            case ["trace", "setting"]:
                return TRACE_SETTINGS
        raise _unknown(request)

    def _infer(self, request: HttpRequest, name: str, version: str | None) -> HttpResponse:
        body, header_bytes = request.content(self._body_bytes_max), request.header_bytes
        is_small = header_bytes is None and len(body) <= REPEATED_BYTES_MAX
        asked = _decoded(bytes(body)) if is_small else decode(body, header_bytes)
        return self._run(Inference(request.target, name, version, asked, request.came_ns))

    def _run(self, inference: Inference) -> HttpResponse:
        began = monotonic_ns()
        name, request = inference.name, inference.request
        outputs = self._face.infer(name, inference.version, request, inference.came_ns)
        self._note(inference.target, name, monotonic_ns() - began)
        response = self._answers.find(outputs)
        if response is None:
            response = _response(encode(name, VERSION, request.identifier, outputs))
            self._answers.keep(outputs, response)
        return response

    def remember(self, data: bytes, request: HttpRequest) -> None:
        """Have these bytes, all of a request that was granted, be known by `known`."""
        is_small = len(request.body) <= REPEATED_BYTES_MAX
        is_plain = not {HEADER_LENGTH, "content-encoding", "origin"} & request.headers.keys()
        if not (is_small and is_plain and request.target in self._quick):
            return
        name, version, _ = _named(_segments(request)[2:])
        asked = _decoded(bytes(request.body))
        if len(self._repeated) >= TARGETS_MAX:
            self._repeated.clear()
        self._repeated[data] = Inference(request.target, name, version, asked, request.came_ns)

    def known(self, data: bytes) -> Inference | None:
        """The inference that bytes of a request by themselves were, if it was remembered."""
        found = self._repeated.get(data)
        return None if found is None else replace(found, came_ns=monotonic_ns())

    def standing(self, inference: Inference) -> tuple[Standing, bytes] | None:
        """How an inference may be run again as it is, and its response; None if it may not."""
        try:
            standing = self._face.standing(inference.name, inference.version, inference.request)
        except OipError:
            return None
        response = None if standing is None else self._answers.find(standing.outputs)
        if standing is None or response is None:
            return None
        return standing, b"".join([response.head, b"\r\n", *response.parts])

    def _note(self, target: str, name: str, duration_ns: int) -> None:
        """Remember whether a call was quick, and will be: its model has one shape."""
        is_fixed = self._face.repository.has_fixed_shapes(name)
        if target not in self._quick and len(self._quick) >= TARGETS_MAX:
            self._quick.clear()
        self._quick[target] = is_fixed and duration_ns < QUICK_NS

    def _repository_call(self, request: HttpRequest, rest: list[str]) -> HttpResponse:
        body = parse(request.content(self._body_bytes_max))
        repository = self._face.repository
        match rest:
            case ["index"]:
                only_ready = optional(body, "ready", bool) or False
                return json_response(repository.index(only_ready=only_ready))
            case ["models", name, "load"]:
                self._face.load(name, has_parameters=bool(optional(body, "parameters", dict)))
                return HttpResponse()
            case ["models", name, "unload"]:
                repository.unload(name)
                return HttpResponse()
        raise _unknown(request)

    def _region_call(self, request: HttpRequest, segments: list[str]) -> HttpResponse:
        regions, memory = self._face.regions, MEMORIES[segments[0]]
        match (request.method, *segments[1:]):
            case ("GET", "status"):
                return json_response(status(regions, memory, None))
            case ("GET", "region", name, "status"):
                return json_response(status(regions, memory, name))
            case ("POST", "unregister"):
                unregister(regions, memory, None)
            case ("POST", "region", name, "unregister"):
                unregister(regions, memory, name)
            case ("POST", "region", name, "register"):
                self._register(request, memory, name)
            case _:
                raise _unknown(request)
        return HttpResponse()

    def _register(self, request: HttpRequest, memory: Memory, name: str) -> None:
        regions = self._face.regions
        regions.check_enabled()
        if memory is Memory.CUDA:
            register_cuda(regions, name)
        body = parse(request.content(self._body_bytes_max))
        key, size_bytes = field(body, "key", str), field(body, "byte_size", int)
        regions.register(Region(name, key, optional(body, "offset", int) or 0, size_bytes))


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


def _segments(request: HttpRequest) -> list[str]:
    path = request.target.partition("?")[0]
    return [unquote(segment) for segment in path.strip("/").split("/")]


def _named(segments: list[str]) -> tuple[str, str | None, list[str]]:
    """`[NAME[/versions/V]]/CALL` as name, version and call."""
    name, *rest = segments or [""]
    if len(rest) >= 2 and rest[0] == "versions":
        return name, rest[1], rest[2:]
    return name, None, rest


def _unknown(request: HttpRequest) -> OipError:
    return OipError(f"there is no call {request.method} {request.target}", Code.NOT_FOUND)
