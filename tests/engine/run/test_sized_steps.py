"""Segments as steps over numbered values."""

import numpy as np

from tests.engine.run.programs import loaded
from tightship.engine.program.program import Space
from tightship.engine.run.sized_steps import sized_steps


def test_a_program_of_planned_steps_has_no_values():
    run, _ = loaded("g (float[4] x) => (float[4] y) { y = Exp (x) }")
    assert sized_steps(run.executable.segments) is None
    assert run.executable.sized is None
    assert run.arena.sized is None


def test_objects_and_planned_operands_are_values():
    run, _ = loaded(
        "g (float[4] x) => (int64[1, n] y) { a = NonZero (x) y = Add (a, one) }",
        one=np.array(1),
    )
    steps = run.executable.sized
    assert set(steps.objects) == {"a", "y"}
    places = [operand.space for operand, _ in steps.planned]
    assert sorted(each.value for each in places) == ["external", "weights"]
    numbers = [*steps.objects.values(), *(number for _, number in steps.planned)]
    assert sorted(numbers) == list(range(4))
    assert Space.OBJECT not in places


def test_a_value_of_a_type_that_numpy_lacks_stays_with_python():
    run, _ = loaded(
        """g (bfloat16[4] x) => (bfloat16[n] y) {
        f = Cast <to = 1> (x) z = NonZero (f) t = Transpose (z) y = GatherND (x, t) }"""
    )
    operators = [s.step.operator for s in run.executable.segments if hasattr(s, "step")]
    assert "GatherND" in operators
    assert "x" not in {operand.name for operand, _ in run.executable.sized.planned}
