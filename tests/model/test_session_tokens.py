"""Tokens that a session reads and keeps."""

import numpy as np
import pytest

from tests import decoders
from tests.engine.state.loops import decoder
from tightship.errors import InputError
from tightship.model.session_tokens import KeptTokens, read_tokens


def test_tokens_are_read_as_the_model_takes_them() -> None:
    made = decoder(decoders.llama(), 16)
    for given in ([1, 2], np.array([[1, 2]], np.uint8)):
        found = read_tokens(given, made, 14)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, [[1, 2]])
    with pytest.raises(InputError, match="2 tokens after 15 are more than the session's context"):
        read_tokens([1, 2], made, 15)


def test_tokens_are_kept_and_cut() -> None:
    kept, given = KeptTokens(), np.array([[1, 2, 3]])
    kept.add(given)
    given[:] = 9
    kept.add(np.array([[4, 5]]))
    np.testing.assert_array_equal(kept.all(), [[1, 2, 3, 4, 5]])
    kept.cut(4)
    kept.add(np.array([[6]]))
    np.testing.assert_array_equal(kept.all(), [[1, 2, 3, 4, 6]])
    kept.cut(0)
    kept.add(np.array([[7]]))
    np.testing.assert_array_equal(kept.all(), [[7]])
