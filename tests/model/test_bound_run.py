"""Runs on arrays that stay, and contexts that outlast the programs of a model."""

import gc
from mmap import PAGESIZE as PAGE_BYTES

import numpy as np
import pytest

from tests.models import parse
from tightship._core import StopFlag
from tightship.loading import load

WEIGHTS = np.arange(64, dtype=np.float32)
MODEL = parse("m (float[n,64] x) => (float[n,64] y) { y = Add(x, w) }", w=WEIGHTS)
OWN_WEIGHTS = parse(
    """m (float[n] x) => (float[n] y) {
        s = Shape(x) ones = ConstantOfShape<value = float[1] {1.0}>(s)
        share = Softmax<axis = 0>(ones) y = Add(x, share)
    }"""
)
"""Model with a constant of the length of the input."""


@pytest.fixture
def model():
    with load(MODEL.SerializeToString(), shapes={"x": (4, 64)}, programs=2) as loaded:
        yield loaded


class Rows:
    """A bound run on so many rows."""

    def __init__(self, model, count):
        self.x = np.full((count, 64), count, np.float32)
        self.y = np.zeros_like(self.x)
        self.stop = StopFlag()
        self.bound = model.bind({"x": self.x}, {"y": self.y})
        self.bound.run(self.stop)

    def check(self):
        np.testing.assert_array_equal(self.y, self.x + WEIGHTS)
        self.y[...] = 0


def test_a_bound_run_finds_a_program_that_was_made_anew(model):
    runs = [Rows(model, count) for count in range(1, 6)]
    for each in runs:
        each.check()
        each.bound.run(each.stop)
        each.check()
    assert model.programs.evictions > 0


def test_a_context_runs_though_its_program_was_evicted_and_made_anew(model):
    """Steps and weights stay with the context, whatever becomes of them in the model."""
    rows = Rows(model, 2)
    context, steps = rows.bound.alone()
    program = context.program
    for count in range(5, 9):
        Rows(model, count)
    rows.bound.run(rows.stop)
    again, _ = rows.bound.alone()
    assert again.program is not program
    gc.collect()
    rows.y[...] = 0
    assert context.run(steps, rows.stop) == "done"
    rows.check()


def test_a_bound_run_keeps_no_weights_that_the_model_releases():
    with load(OWN_WEIGHTS.SerializeToString(), shapes={"x": (4,)}, programs=2) as model:
        first = model.bind({"x": np.zeros(4, np.float32)}, {"y": np.zeros(4, np.float32)})
        first.run(StopFlag())
        assert first.alone() is not None
        runs = []
        for length in range(100, 108):
            x, y = np.zeros(length, np.float32), np.ones(length, np.float32)
            run = model.bind({"x": x}, {"y": y})
            run.run(StopFlag())
            runs.append((run, run.alone(), y))
        for run, alone, y in runs:
            run.run(StopFlag())
            np.testing.assert_allclose(y, 1 / len(y))
            assert alone is None
        assert model.memory_stats().weights_bytes <= 3 * PAGE_BYTES
