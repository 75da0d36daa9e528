"""Decisions on the past length."""

import pytest

from tests.decoders import Writer
from tests.engine.state.loops import decoder
from tests.engine.state.one_operator import CONTEXT, model_of
from tightship.errors import GraphError


def choosing(limit: int):
    """A graph that takes another number where there are `limit` rows."""

    def build(w: Writer, rows: str, _: str) -> str:
        total = w("Shape", rows, start=2, end=3)
        is_limit = w("Equal", total, w.constant([limit]))
        return w("Expand", w.number(1), w("Where", is_limit, w.constant([2]), w.constant([3])))

    return build


def test_a_decision_that_the_context_has_both_cases_of_is_refused() -> None:
    made = decoder(model_of(choosing(7)), CONTEXT)
    with pytest.raises(GraphError, match=f"passes 7, and a context of {CONTEXT}"):
        made.graph(1, last=False)


def test_a_decision_beyond_the_context_is_none() -> None:
    made = decoder(model_of(choosing(CONTEXT + 1)), CONTEXT)
    assert made.graph(1, last=False).value("result").shape == (3,)
