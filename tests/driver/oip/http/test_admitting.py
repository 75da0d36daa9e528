"""Admission of requests by their heads."""

import pytest

from tightship.driver.oip.admission.gate import AdmissionError, Gate
from tightship.driver.oip.http.admitting import Admitted, Refused, admitted
from tightship.driver.oip.regions import Code

INFER = ("POST", "/v2/models/m/infer")


class Shut(Gate):
    """A gate that admits open calls alone."""

    def admit(self, address, headers, *, is_open):  # noqa: ARG002  of a gate
        if is_open:
            return address
        raise AdmissionError("no", Code.UNAUTHENTICATED)


@pytest.mark.parametrize("target", ["/v2/health/live", "/v2/health/ready"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_whether_the_server_lives_and_is_ready_is_open(method, target):
    for headers in ({}, {"content-length": "0"}):
        found = admitted(Shut(), "10.1.2.3", method, target, headers.items())
        assert found == Admitted("10.1.2.3", "10.1.2.3")


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("POST", "/v2/health/live", {}),
        ("GET", "/v2/health/live/", {}),
        ("GET", "/v2/health/live", {"content-length": "1"}),
        ("GET", "/v2/health/live", {"content-length": "00"}),
        ("GET", "/v2/health/live", {"transfer-encoding": "chunked"}),
        ("GET", "/v2/health/LIVE", {}),
        ("GET", "/v2/models/m/ready", {}),
    ],
)
def test_nothing_else_is_open(method, target, headers):
    assert isinstance(admitted(Shut(), "10.1.2.3", method, target, headers.items()), Refused)


@pytest.mark.parametrize(
    ("headers", "is_last"),
    [
        ({}, False),
        ({"content-length": "65536"}, False),
        ({"content-length": "65537"}, True),
        ({"content-length": "2", "expect": "100-continue"}, True),
        ({"content-length": "2", "transfer-encoding": "chunked"}, True),
        ({"content-length": "9" * 30}, True),
        ({"content-length": "-1"}, True),
        ({"transfer-encoding": "chunked"}, True),
    ],
)
def test_the_connection_ends_if_a_body_may_still_come(headers, is_last):
    found = admitted(Shut(), "10.1.2.3", *INFER, headers.items())
    assert found.is_last is is_last
    assert found.response.status == 401
    assert (b"WWW-Authenticate", b'Bearer realm="tightship"') in found.response.headers
