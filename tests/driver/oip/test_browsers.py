"""Who may ask, by what a browser says of itself."""

import pytest

from tightship.driver.oip.browsers import is_loopback, may_ask


@pytest.mark.parametrize(
    ("headers", "locally", "elsewhere"),
    [
        ({}, True, True),
        ({"host": "127.0.0.1:8000"}, True, True),
        ({"host": "localhost"}, True, True),
        ({"host": "LocalHost:8000"}, True, True),
        ({"host": "[::1]:8000"}, True, True),
        ({"host": "[::1]"}, True, True),
        ({"host": "models.example.org:8000"}, False, True),
        ({"host": "127.0.0.1.example.org"}, False, True),
        ({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}, True, True),
        ({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:9000"}, False, False),
        ({"host": "127.0.0.1:8000", "origin": "null"}, False, False),
        ({"host": "example.org", "origin": "http://example.org"}, False, True),
    ],
)
def test_a_page_of_another_server_may_not_ask(headers, locally, elsewhere):
    assert may_ask(headers, is_local=True) is locally
    assert may_ask(headers, is_local=False) is elsewhere


def test_loopback_is_what_nobody_else_reaches():
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org")))
