"""Calls of the Open Inference Protocol over HTTP, answered by the models of one replica.

Decoding, checks, answers and errors are those of the driver's endpoint. Loading and unloading are
not offered, because a client cannot choose the replica; neither is memory shared with clients.
"""

from tightship._core import RunPermits
from tightship.cluster.arriving_body import TEXT, ArrivingBody, JsonRequest, too_large
from tightship.cluster.request_memory import BodyLimits
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.message import HttpRequest, HttpResponse, error_response
from tightship.driver.oip.http.paths import VERSIONED, Paths, Values
from tightship.driver.oip.http.tables import index_call, model_calls, named, server_calls
from tightship.driver.oip.infer_request import decode
from tightship.driver.oip.infer_response import encode
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Code, RegionError
from tightship.driver.oip.repository import Repository


class InferenceCalls:
    """Answers requests for the models of a repository, one at a time."""

    def __init__(self, repository: Repository, limits: BodyLimits) -> None:
        """Answer for a repository, within limits on bodies."""
        self._limits = limits
        self._endpoint = InferenceEndpoint(repository, RegionFiles(is_enabled=False), RunPermits(1))
        self._paths = Paths(
            {
                f"{VERSIONED}/infer": {"POST": self._infer},
                **server_calls(self._endpoint, None),
                **model_calls(self._endpoint),
                **index_call(self._endpoint, limits.json_bytes),
            }
        )

    def arriving(self, request: HttpRequest) -> ArrivingBody:
        """Return what takes the body of a request."""
        return ArrivingBody(request, self._limits)

    def model_of(self, target: str) -> str | None:
        """Return the name of the model in a path; None if it has none."""
        found = self._paths.find(target)
        return None if found is None else found[1].get("name")

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request; a refusal has its reason as `{"error": ...}`.

        A call for which the replica has too little memory is answered 503.
        """
        try:
            return self._paths.answer(request)
        except (OipError, RegionError) as error:
            return error_response(error.code.http_status, str(error))
        except MemoryError as error:
            return error_response(Code.UNAVAILABLE.http_status, str(error) or OUT_OF_MEMORY)

    def _infer(self, request: HttpRequest, values: Values) -> HttpResponse:
        name, version = named(values)
        if isinstance(request, JsonRequest):
            asked = request.arrays.request()
        else:
            header_bytes = request.header_bytes
            if header_bytes is not None and header_bytes > self._limits.json_bytes:
                return too_large(header_bytes, self._limits.json_bytes, TEXT)
            asked = decode(request.content(self._limits.raw_bytes), header_bytes)
        answer = self._endpoint.infer(name, version, asked, request.came_ns)
        found = encode(name, answer.served.version, asked.identifier, answer.outputs)
        kind = "application/json" if found.header_bytes is None else "application/octet-stream"
        return HttpResponse(200, found.parts, kind, found.header_bytes)
