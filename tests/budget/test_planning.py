import pytest

import tightship
from tests.processor import HAS_AVX512
from tests.small_models import dense
from tightship.budget import (
    IsaPlanner,
)
from tightship.errors import InputError


def test_plans_are_of_the_instruction_set_and_not_of_the_machine(folder):
    with IsaPlanner("avx2") as planner:
        plan = planner.plan(folder / "model.onnx", {"batch": 8})
        assert plan.key["cpu_isa"] == "avx2"
        assert plan.rectangles == planner.plan(dense()[0], {"batch": 8}).rectangles
        assert not any("avx512" in step.kernel for step in plan.steps)
    here = tightship.plan(folder / "model.onnx", shapes={"batch": 8})
    assert here.key["cpu_isa"] != "avx2" or not HAS_AVX512


def test_other_models_are_refused_with_advice():
    with IsaPlanner("avx2") as planner, pytest.raises(InputError, match="not dict; save a program"):
        planner.plan({})
