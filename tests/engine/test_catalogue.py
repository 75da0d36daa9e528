"""The models that people run, in small, against ONNX Runtime and against themselves."""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

import tightship
from tests.processor import HAS_VNNI
from tests.zoo.arena import LARGE, NOT_A_NUMBER, poison
from tests.zoo.catalogue import SMALL
from tests.zoo.net import Array, Case
from tests.zoo.oracle import assert_near, assert_same_bits, expected
from tests.zoo.stepwise import run_poisoned
from tightship.engine.lower.pipeline import pass_names

FLOAT = [name for name in SMALL if "int8" not in name and "qlinear" not in name]
EXACT = 0.999 if HAS_VNNI else 0.9
"""Least share of numbers within a step; where sums saturate, each library has its own order."""
QUICK = ("efficientnet_b0", "gpt2", "whisper_decoder", "lstm_bidirectional")


@functools.cache
def small(name: str, batch: int = 1) -> tuple[Case, dict[str, Array]]:
    """A model, and what ONNX Runtime makes of its inputs."""
    case = SMALL[name](batch)
    return case, expected(case.model, case.feeds)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", FLOAT)
def test_a_model_gives_what_onnxruntime_gives(name: str, batch: int) -> None:
    case, wanted = small(name, batch)
    with tightship.load(case.model) as model:
        assert_near(model.run(case.feeds), wanted)
        assert model.plan.lower_bound_bytes <= model.plan.arena_bytes
        assert model.plan.arena_bytes <= 1.02 * model.plan.lower_bound_bytes


def one_step(case: Case, wanted: dict[str, Array]) -> float:
    """Return the tolerance of an output's numbers: a step of its scale, or 2 % of the largest."""
    graph = onnx.load_from_string(case.model).graph
    scales = {tensor.name: tensor for tensor in graph.initializer}
    if graph.node[-1].op_type == "DequantizeLinear":
        return 1.01 * float(onnx.numpy_helper.to_array(scales[graph.node[-1].input[1]]))
    return 0.02 * max(float(np.abs(array).max()) for array in wanted.values())


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", sorted(set(SMALL) - set(FLOAT)))
def test_a_model_in_eight_bits_is_within_a_step_of_onnxruntime(name: str, batch: int) -> None:
    case, wanted = small(name, batch)
    with tightship.load(case.model) as model:
        results = model.run(case.feeds)
    for key, want in wanted.items():
        assert results[key].shape == want.shape
        assert (np.abs(results[key] - want) <= one_step(case, wanted)).mean() >= EXACT


@pytest.mark.parametrize("left_out", pass_names())
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in FLOAT]
)
def test_a_model_gives_the_same_without_any_one_pass(name: str, left_out: str) -> None:
    case, wanted = small(name)
    with tightship.load(case.model, without=(left_out,)) as model:
        assert_near(model.run(case.feeds), wanted)


@pytest.mark.parametrize("name", SMALL)
def test_nothing_depends_on_what_the_arena_held_or_on_other_threads(name: str) -> None:
    case, _ = small(name)
    with tightship.load(case.model) as model, ThreadPoolExecutor(8) as threads:
        first = model.run(case.feeds)
        for byte in (NOT_A_NUMBER, LARGE):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds), first)
        for results in threads.map(lambda _: model.run(case.feeds), range(16)):
            assert_same_bits(results, first)


@pytest.mark.parametrize("name", SMALL)
def test_no_step_reads_bytes_that_are_not_alive(name: str) -> None:
    case, _ = small(name)
    with tightship.load(case.model) as model:
        assert_same_bits(run_poisoned(model, case.feeds), model.run(case.feeds))
