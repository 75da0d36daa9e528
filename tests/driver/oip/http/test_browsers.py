"""Requests of a browser that are answered, by the headers that it sends."""

import pytest

from tightship.driver.oip.http.browsers import AllowedOrigins, is_loopback


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
def test_a_page_of_another_server_may_not_call(headers, locally, elsewhere):
    for is_local, is_answered in ((True, locally), (False, elsewhere)):
        refusal = AllowedOrigins(is_local).refusal(headers)
        assert (refusal is None) is is_answered


@pytest.mark.parametrize(
    ("headers", "is_answered"),
    [
        ({"host": "models.example.org"}, True),
        ({"host": "Models.Example.Org:443"}, True),
        ({"host": "127.0.0.1:8000"}, True),
        ({"host": "other.example.org"}, False),
        ({"host": "models.example.org.evil.net"}, False),
        ({"host": "127.0.0.1:8000", "origin": "https://models.example.org"}, True),
        ({"host": "models.example.org", "origin": "https://evil.net"}, False),
        ({"host": "models.example.org", "origin": "null"}, False),
    ],
)
def test_a_server_has_the_names_that_it_is_given(headers, is_answered):
    names = frozenset({"models.example.org", "models"})
    refusal = AllowedOrigins(is_local=True, names=names).refusal(headers)
    assert (refusal is None) is is_answered


def test_loopback_is_reached_from_this_machine_alone():
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org")))
