"""Graphs of a decoder for a whole context."""

import pytest

from tests import decoders
from tests.engine.state.loops import decoder
from tightship.engine.state.decoder_graph import decoder_graph
from tightship.errors import GraphError
from tightship.graph import DType


def test_the_logits_of_the_last_token_alone_are_asked_for() -> None:
    made = decoder(decoders.llama(), 32)
    shapes = [
        decoder_graph(made, 4, last=last).value(made.logits).static_shape for last in (True, False)
    ]
    assert shapes == [(1, 1, 50), (1, 4, 50)]


def test_a_pair_that_is_no_cache_is_refused() -> None:
    made = decoder(decoders.llama(), 32)
    first, *others = made.caches
    odd = first._replace(dtype=DType.FLOAT64)
    with pytest.raises(GraphError, match="they are not one cache"):
        decoder_graph(made._replace(caches=(odd, *others)), 1, last=True)
