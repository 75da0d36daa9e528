"""Routing of HTTP calls by path and method."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import unquote

from tightship.driver.oip.http.message import HttpRequest, HttpResponse, error_response

Values = Mapping[str, str]
"""Values of a path's named segments."""
Call = Callable[[HttpRequest, Values], HttpResponse]
Methods = Mapping[str, Call]

TARGETS_MAX = 256
"""Targets whose calls are remembered."""
VERSIONED = "/v2/models/{name}[/versions/{version}]"


class Paths:
    """Calls by path and method. A segment `{name}` matches any; `[...]` is optional."""

    def __init__(self, calls: Mapping[str, Methods]) -> None:
        """Add paths; of two that match a target, the first in `calls` answers."""
        self._known: dict[int, list[tuple[list[str], Methods]]] = {}
        self._found: dict[str, tuple[Methods, Values]] = {}
        for path, methods in calls.items():
            head, _, rest = path.partition("[")
            optional, _, tail = rest.partition("]")
            for each in {head + tail, head + optional + tail}:
                segments = _segments(each)
                self._known.setdefault(len(segments), []).append((segments, methods))

    def find(self, target: str) -> tuple[Methods, Values] | None:
        """Return the methods of a target and its named segments; None if it is unknown."""
        if target in self._found:
            return self._found[target]
        found = self._search(target)
        if found is not None:
            if len(self._found) >= TARGETS_MAX:
                self._found.clear()
            self._found[target] = found
        return found

    def _search(self, target: str) -> tuple[Methods, Values] | None:
        given = [unquote(segment) for segment in _segments(target.partition("?")[0])]
        for segments, methods in self._known.get(len(given), ()):
            pairs = list(zip(segments, given, strict=True))
            if all(known == each or known[:1] == "{" for known, each in pairs):
                return methods, {known[1:-1]: each for known, each in pairs if known[:1] == "{"}
        return None

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request; 404 or 405 if its path or method is unknown."""
        found, said = self.find(request.target), f"{request.method} {request.target}"
        if found is None:
            return error_response(404, f"there is no call {said}")
        methods, values = found
        if request.method in methods:
            return methods[request.method](request, values)
        allowed = tuple(sorted({*methods, "HEAD"} if "GET" in methods else methods))
        message = f"{said} is not allowed; the methods of this path are {', '.join(allowed)}"
        return replace(error_response(405, message), allowed=allowed)


def _segments(path: str) -> list[str]:
    return path.strip("/").split("/")
