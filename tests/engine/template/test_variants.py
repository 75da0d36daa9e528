"""Any length of a model is run as by a model that was loaded for it alone."""

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightship
from tests.zoo import open_lengths
from tests.zoo.oracle import assert_near

ARENA_MOST = 1.02
"""Largest ratio of an arena to its lower bound."""
MODELS = {
    "text": (open_lengths.text, lambda n: {"ids": (1, n)}),
    "sound": (open_lengths.sound, lambda n: {"x": (1, 8, n)}),
    "line": (open_lengths.line, lambda n: {"x": (2, 3, 32, n)}),
    "picture": (open_lengths.picture, lambda n: {"x": (1, 3, n, n + 5)}),
    "words": (open_lengths.words, lambda n: {"x": (2, 3, 8, n)}),
    "speech": (open_lengths.speech, lambda n: {"x": (1, 8, n)}),
}


@functools.cache
def source(name: str) -> bytes:
    return MODELS[name][0]()


def feeds(name: str, length: int) -> dict[str, np.ndarray[Any, Any]]:
    """Made-up inputs."""
    numbers = np.random.default_rng(length)
    ((key, shape),) = MODELS[name][1](length).items()
    if name == "text":
        return {key: numbers.integers(0, 60, shape)}
    return {key: numbers.standard_normal(shape, np.float32)}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=4)
@given(lengths=st.lists(st.integers(9, 64), min_size=3, max_size=5))
def test_a_length_gives_what_a_model_loaded_for_it_gives(name: str, lengths: list[int]) -> None:
    with tightship.load(source(name), shapes=MODELS[name][1](20)) as model:
        for length in lengths:
            inputs = feeds(name, length)
            found = model.run(inputs)
            plan = model.plan_for(MODELS[name][1](length))
            assert plan.arena_bytes <= ARENA_MOST * plan.lower_bound_bytes
            with tightship.load(source(name), shapes=MODELS[name][1](length)) as alone:
                assert_near(found, alone.run(inputs))


def test_weights_of_convolutions_are_packed_once_for_all_lengths() -> None:
    with tightship.load(source("picture"), shapes=MODELS["picture"][1](20)) as model:
        model.run(feeds("picture", 24))
        held = model.plan_for(MODELS["picture"][1](31)).weights_bytes
        assert held == model.plan.weights_bytes
