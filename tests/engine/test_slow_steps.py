"""No step of the models that people run is left on a slow tier, but for those listed here."""

import pytest

import tightship
from tests.processor import HAS_AVX512
from tests.zoo.catalogue import SMALL
from tightship.engine.lower.onednn.choose import is_slow
from tightship.engine.plan.memory_plan import MemoryPlan, PlannedStep

FAST = frozenset({"onednn", "native"})

WITH_AVX2 = "oneDNN has no product of matrices for AVX2 that allocates nothing"
EXCEPTIONS: dict[tuple[str, str], str] = (
    {}
    if HAS_AVX512
    else {(name, f"numpy:{name.partition('+')[0]}"): WITH_AVX2 for name in ("MatMul", "Gemm")}
)
"""Reasons why no faster kernel runs a step, by operator and implementation."""


def named(step: PlannedStep) -> tuple[str, str]:
    """A step as `EXCEPTIONS` lists it."""
    implementation = step.implementation
    return step.operator, f"onednn:{implementation}" if step.kernel == "onednn" else implementation


def slow_steps(plan: MemoryPlan) -> set[tuple[str, str]]:
    """Return the steps that run on NumPy, on objects, or on a slow implementation of oneDNN."""
    return {
        named(step)
        for step in plan.steps
        if step.kernel not in FAST or is_slow(step.implementation)
    }


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", SMALL)
def test_a_slow_step_is_a_listed_exception(name: str, batch: int) -> None:
    with tightship.load(SMALL[name](batch).model) as model:
        assert slow_steps(model.plan) <= set(EXCEPTIONS)


@pytest.mark.parametrize("name", SMALL)
def test_no_step_allocates_outside_its_plan(name: str) -> None:
    with tightship.load(SMALL[name](1).model) as model:
        assert [step.name for step in model.plan.steps if step.dynamic_reason] == []


def test_every_way_of_being_slow_is_seen() -> None:
    with tightship.load(SMALL["unet"](1).model, without=("onednn", "native")) as model:
        assert {implementation for _, implementation in slow_steps(model.plan)} >= {"numpy:Conv"}
