"""Requests as ASGI has them."""

import pytest

from tightship.driver.oip.http.scope import headers_of, takes_views, target_of


@pytest.mark.parametrize(
    ("path", "root", "query", "target"),
    [
        ("/v2/health/live", "", b"", "/v2/health/live"),
        ("/v2/health/live", "", b"a=1", "/v2/health/live?a=1"),
        ("/at/v2/health/live", "/at", b"", "/v2/health/live"),
        ("/v2/health/live", "/v2", b"", "/v2/health/live"),
        ("/a b", "", b"", "/a%20b"),
    ],
)
def test_a_target_is_that_of_the_protocol(path, root, query, target):
    assert target_of({"path": path, "root_path": root, "query_string": query}) == target


def test_headers_and_extensions_are_found():
    assert headers_of({"headers": [(b"host", b"a"), (b"x", b"\xe9")]}) == {"host": "a", "x": "\xe9"}
    assert not takes_views({})
    assert not takes_views({"extensions": None})
    assert takes_views({"extensions": {"tightship.views": {}}})
