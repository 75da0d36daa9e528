"""Errors that cross a process: workers of `multiprocessing` and of Ray return them pickled."""

import pickle

import pytest

from tightship import errors
from tightship.errors import CapacityError, DriverError, OutOfMemoryError, TightshipError

NUMBERED = [
    CapacityError("too large", needed_bytes=2, limit_bytes=1),
    OutOfMemoryError("none left", requested_bytes=5, available_bytes=3),
    DriverError("refused", status=4),
]
PLAIN = [
    kind("text")
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, TightshipError)
    if kind not in {type(error) for error in NUMBERED}
]


@pytest.mark.parametrize("error", [*NUMBERED, *PLAIN], ids=lambda error: type(error).__name__)
def test_a_pickled_error_keeps_its_text_and_numbers(error):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
    assert found.args == error.args
