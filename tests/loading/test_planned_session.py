"""Memory of sessions, by their number."""

import pytest

from tightship.errors import InputError
from tightship.loading.planned_session import SessionParts, SessionPlan, StepParts, batch_of

DECLARED = {"ids": ("batch", "length"), "past": ("batch", 2, "past", 8), "table": (4,)}


def test_each_session_adds_its_state_to_the_rest() -> None:
    plan = SessionPlan(8, 1000, 200, 30, 4, 800, 100)
    assert [plan.peak_bytes(count) for count in (0, 1, 3)] == [1234, 2034, 3634]


def test_layers_add_what_one_adds_and_nothing_to_arenas() -> None:
    def parts(layers: int, arena: int = 500) -> SessionParts:
        steps = (
            StepParts(arena, 70 + 16 * layers, 40 * layers, 9 * layers),
            StepParts(90, 16 * layers, 30, 20),
        )
        return SessionParts(
            100 + 10 * layers, 60, (5 * layers, 3 * layers), 9, 8 * layers, steps, 0, 7 + layers
        )

    assert parts(3).with_more_layers(parts(2), 7) == parts(10)
    assert parts(3).with_more_layers(parts(2, arena=400), 7) is None
    plan = parts(10).plan(8, 4)
    assert (plan.weights_bytes, plan.arena_bytes, plan.io_bytes) == (200, 560, 87)
    assert (plan.state_bytes, plan.bytes_per_token) == (80, 10)


def test_the_batch_is_the_one_length_that_may_be_given() -> None:
    assert [batch_of(DECLARED, given) for given in ({}, {"batch": 3})] == [1, 3]
    for given in ({"past": 3}, {"ids": (1, 2)}):
        with pytest.raises(InputError, match="only the batch may be, by its name: batch"):
            batch_of(DECLARED, given)
