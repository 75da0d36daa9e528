"""Choices of a caller of `Model.session`."""

import pytest

import tightship
from tightship.model.session_options import SessionOptions


@pytest.mark.parametrize(
    ("context", "chunk", "steps"), [(4096, 128, 128), (4096, 100, 64), (20, 128, 8), (8, 128, 4)]
)
def test_a_program_takes_at_most_half_the_context(context: int, chunk: int, steps: int) -> None:
    assert SessionOptions(context, chunk=chunk).choices().chunk == steps


def test_a_chunk_is_at_least_one() -> None:
    with pytest.raises(tightship.InputError, match="at least 1"):
        SessionOptions(32, chunk=0)
