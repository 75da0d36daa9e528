"""A step that copies a value whole."""

import numpy as np

import tightship
from tests import small_models
from tightship.engine.lower.steps.copy_step import copy_step
from tightship.engine.program.program import NativeWork, Operand, Space
from tightship.graph import DType


def test_it_reads_one_operand_and_writes_the_other():
    source = Operand("x", Space.EXTERNAL, 3, DType.FLOAT32, (2, 5))
    target = Operand("x", Space.ARENA, 0, DType.FLOAT32, (2, 5))
    step = copy_step("x.copy", source, target)
    assert (step.name, step.operator, step.reads, step.writes) == (
        "x.copy", "Copy", (source,), (target,)
    )  # fmt: skip
    assert isinstance(step.work, NativeWork)
    assert step.work.operands == (source, target)
    assert not step.sharing
    assert not step.scratch_bytes


def test_an_input_that_is_an_output_is_copied():
    model = small_models.model([], [("x", 1, [2, 3])], [("x", 1, [2, 3])], {})
    with tightship.load(model) as loaded:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(loaded(x), x)
