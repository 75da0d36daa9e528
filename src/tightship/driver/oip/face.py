"""What each call is answered: requests and responses as values, without a socket."""

from urllib.parse import unquote

from tightship import __version__
from tightship.driver.oip.http_message import (
    HttpRequest,
    HttpResponse,
    error_response,
    json_response,
)
from tightship.driver.oip.infer_request import decode
from tightship.driver.oip.inference import infer
from tightship.driver.oip.json_fields import optional, parse
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_calls import answer_region_call
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import VERSION, Repository, config_of, metadata_of
from tightship.driver.oip.request_counts import Counts, prometheus_text, statistics_of
from tightship.driver.rules.regions import Code, RegionError

EXTENSIONS = (
    "binary_tensor_data",
    "cuda_shared_memory",
    "model_configuration",
    "model_repository",
    "parameters",
    "statistics",
    "system_shared_memory",
)


class Face:
    """Answers the calls of the protocol. May be used from several threads.

    Attributes:
        is_draining: Whether it is about to end; it is not ready then, and answers all the same.
    """

    def __init__(self, repository: Repository, regions: RegionFiles, body_bytes_max: int) -> None:
        self._repository = repository
        self._regions = regions
        self._body_bytes_max = body_bytes_max
        self.is_draining = False

    def respond(self, request: HttpRequest) -> HttpResponse:
        """The response to a request; a refused one has its reason as `{"error": ...}`."""
        try:
            return self._answer(request)
        except (OipError, RegionError) as error:
            return error_response(error.code.http_status, str(error))

    def _answer(self, request: HttpRequest) -> HttpResponse:
        path = request.target.partition("?")[0]
        segments = [unquote(segment) for segment in path.strip("/").split("/")]
        match (request.method, *segments):
            case (_, "v2", "models", *rest):
                return self._model_call(request, rest)
            case ("POST", "v2", "repository", *rest):
                return self._repository_call(request, rest)
            case (_, "v2", "systemsharedmemory" | "cudasharedmemory", *_):
                body = parse(request.content(self._body_bytes_max))
                said = answer_region_call(self._regions, request.method, segments[1:], body)
                return HttpResponse() if said is None else json_response(said)
            case ("GET", *rest):
                return self._server_call(request, rest)
        raise _unknown(request)

    def _server_call(self, request: HttpRequest, segments: list[str]) -> HttpResponse:
        match segments:
            case ["metrics"]:
                text = prometheus_text(self._counted()).encode()
                return HttpResponse(parts=(text,), content_type="text/plain; version=0.0.4")
            case ["v2"]:
                return json_response(
                    {
                        "name": "tightship",
                        "version": __version__,
                        "extensions": list(EXTENSIONS),
                    }
                )
            case ["v2", "health", "live"]:
                return HttpResponse()
            case ["v2", "health", "ready"]:
                return HttpResponse(400 if self.is_draining else 200)
        raise _unknown(request)

    def _model_call(self, request: HttpRequest, rest: list[str]) -> HttpResponse:
        """`[NAME[/versions/V]]/CALL`."""
        if request.method == "GET" and rest == ["stats"]:
            return self._statistics(self._repository.names)
        name, *rest = rest or [""]
        said_version = None
        if len(rest) >= 2 and rest[0] == "versions":
            _, said_version, *rest = rest
        match (request.method, *rest):
            case ("GET",):
                return json_response(
                    metadata_of(name, self._repository.model(name, said_version)[0])
                )
            case ("GET", "ready"):
                is_ready = self._repository.is_ready(name, said_version)
                return HttpResponse(200 if is_ready else 400)
            case ("GET", "config"):
                return json_response(config_of(name, self._repository.model(name, said_version)[0]))
            case ("GET", "stats"):
                self._repository.model(name, said_version)
                return self._statistics((name,))
            case ("POST", "infer"):
                return self._infer(request, name, said_version)
        raise _unknown(request)

    def _infer(self, request: HttpRequest, name: str, said_version: str | None) -> HttpResponse:
        model, counts = self._repository.model(name, said_version)
        body = request.content(self._body_bytes_max)
        asked = decode(body, request.header_bytes)
        response = infer(name, model, asked, self._regions, counts)
        is_binary = response.header_bytes is not None
        content_type = "application/octet-stream" if is_binary else "application/json"
        return HttpResponse(200, response.parts, content_type, response.header_bytes)

    def _repository_call(self, request: HttpRequest, rest: list[str]) -> HttpResponse:
        body = parse(request.content(self._body_bytes_max))
        match rest:
            case ["index"]:
                only_ready = optional(body, "ready", bool) or False
                return json_response(self._repository.index(only_ready=only_ready))
            case ["models", name, "load"]:
                if optional(body, "parameters", dict):
                    raise OipError(
                        f"failed to load '{name}': a model is loaded as the server was started "
                        "with it; parameters are not supported"
                    )
                self._repository.load(name)
                return HttpResponse()
            case ["models", name, "unload"]:
                self._repository.unload(name)
                return HttpResponse()
        raise _unknown(request)

    def _statistics(self, names: tuple[str, ...]) -> HttpResponse:
        return json_response(
            {
                "model_stats": [
                    statistics_of(name, VERSION, self._repository.counts(name)) for name in names
                ]
            }
        )

    def _counted(self) -> list[tuple[str, str, Counts]]:
        repository = self._repository
        return [(name, VERSION, repository.counts(name)) for name in repository.names]


def is_long(request: HttpRequest) -> bool:
    """Whether answering may take long: running a model, loading or unloading one."""
    return request.method == "POST" and request.target.partition("?")[0].endswith(
        ("/infer", "/load", "/unload")
    )


def _unknown(request: HttpRequest) -> OipError:
    return OipError(f"there is no call {request.method} {request.target}", Code.NOT_FOUND)
