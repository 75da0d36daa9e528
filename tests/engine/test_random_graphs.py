"""Random small graphs: what they compute, and that nothing hangs on what memory held."""

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tightship
from tests.zoo.arena import LARGE, NOT_A_NUMBER, poison
from tests.zoo.oracle import assert_near, assert_same_bits, expected_with_scale
from tests.zoo.random_graph import random_case
from tightship.engine.lower.pipeline import pass_names

SCALE_LIMIT = 1e6
"""Graphs whose numbers grow beyond are left out: their differences say nothing."""


def agrees(seed: int, steps: int, *, threads: int = 1, without: tuple[str, ...] = ()) -> bool:
    """Assert that a random graph is right; False if its numbers grow too large to compare."""
    case = random_case(Random(seed), steps)
    wanted, scale = expected_with_scale(case)
    if scale > SCALE_LIMIT or not all(np.isfinite(array).all() for array in wanted.values()):
        return False
    with tightship.load(case.model, threads=threads, without=without) as model:
        results = model.run(case.feeds)
        assert_near(results, wanted, scale=max(scale, 1.0))
        for byte in (NOT_A_NUMBER, LARGE):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds), results)
    return True


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 16),
    threads=st.sampled_from((1, 2)),
    without=st.lists(st.sampled_from(pass_names()), max_size=2).map(tuple),
)
@settings(max_examples=100)
def test_a_random_graph_gives_what_onnxruntime_gives(
    seed: int, steps: int, threads: int, without: tuple[str, ...]
) -> None:
    assume(agrees(seed, steps, threads=threads, without=without))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 3000, 500))
def test_three_thousand_random_graphs_give_what_onnxruntime_gives(first: int) -> None:
    agreed = sum(agrees(seed, 2 + seed % 15) for seed in range(first, first + 500))
    assert agreed > 400
