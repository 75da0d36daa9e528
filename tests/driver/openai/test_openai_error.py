"""Errors as clients read them."""

import json

import pytest

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.openai.openai_error import ApiError, api_error
from tightship.driver.texts.text_worker import BusyError
from tightship.errors import CapacityError, InputError, StoppedError


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (InputError("wrong"), 400, "invalid_request_error"),
        (OipError("none", Code.NOT_FOUND), 404, "invalid_request_error"),
        (BusyError("later", 7), 429, "rate_limit_error"),
        (CapacityError("full", needed_bytes=2, limit_bytes=1), 503, "server_error"),
        (StoppedError("ended"), 503, "server_error"),
        (ApiError(413, "large"), 413, "invalid_request_error"),
    ],
)
def test_errors_have_a_status_and_a_kind(error: Exception, status: int, kind: str) -> None:
    found = api_error(error)
    assert found is not None
    said = json.loads(found.body)["error"]
    assert (found.status, said["type"]) == (status, kind)


def test_a_client_is_told_when_to_come_again() -> None:
    found = api_error(BusyError("later", 7))
    assert found is not None
    assert found.headers == [(b"Retry-After", b"7")]
    assert ApiError(400, "wrong").headers == []


def test_a_defect_is_no_refusal() -> None:
    assert api_error(ValueError("a secret")) is None
