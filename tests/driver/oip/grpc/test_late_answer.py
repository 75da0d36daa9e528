"""Answers that are sent after a handler has returned, in one piece and as grpcio documents it."""

from types import SimpleNamespace

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import X  # noqa: E402
from tests.driver.oip.grpc.test_waiting_calls import UNAVAILABLE, result, server  # noqa: E402, F401
from tightship.driver.oip.grpc import late_answer  # noqa: E402


def test_the_library_has_what_answers_in_one_piece():
    assert callable(late_answer._server._status)


def test_calls_are_answered_by_what_the_library_documents_too(server, monkeypatch):  # noqa: F811
    monkeypatch.setattr(late_answer, "_server", SimpleNamespace())
    asked, late = server.ask(), server.ask(timeout_us=20_000)
    assert (late.code(), late.details()) == (UNAVAILABLE, "Request timeout expired")
    server.endpoint.permits.give_back()
    assert np.array_equal(result(asked), -X)
