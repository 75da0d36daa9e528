"""Operators of the core on arrays of any shape: against ONNX's node suite and NumPy's tier."""

import numpy as np
import pytest

from tests.engine.kernels.node_suite import Case
from tests.engine.kernels.sized.checks import assert_equal, ints, numeric
from tightship._core import (
    DynamicMemory,
    DynamicPools,
    SizedContext,
    SizedProgram,
    StopFlag,
)
from tightship.engine.kernels import object_kernel
from tightship.engine.kernels.sized.native import PLAIN, sized_operator
from tightship.graph import Node
from tightship.graph.operators import named, rows

OPERATORS = sorted(
    {name for name, row in rows().items() if row.native == PLAIN} | named("sized") - {"If"}
)
FEW = {"Conv", "ConvTranspose", "Range"}
"""Operators of which only the commonest cases are in the core."""
RANDOM = np.random.default_rng(0)


def alone(case: Case) -> list[object] | None:
    """Run a case in the core; None if it leaves the operands."""
    operator = sized_operator(case.node)
    if operator is None:
        return None
    count, program = len(case.inputs), SizedProgram()
    reads = [-1 if each is None else index for index, each in enumerate(case.inputs)]
    writes = [count + index if name else -1 for index, name in enumerate(case.node.outputs)]
    program.add(operator, reads, writes, [])
    program.reserve(count + len(writes))
    context = SizedContext(program, None)
    for index, array in enumerate(case.inputs):
        if array is not None and not context.set(index, array):
            return None
    if context.run((0, 1), False, StopFlag(), None, None, 1) != (1, "done"):
        return None
    return [None if value < 0 else context.get(value) for value in writes]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_agree_with_the_node_suite(operator: str) -> None:
    covered = 0
    for case in numeric(operator):
        found = alone(case)
        if found is None:
            continue
        covered += 1
        for result, wanted in zip(found, case.outputs, strict=True):
            assert_equal(result, wanted, case.name)
    if numeric(operator) and operator not in FEW:
        assert covered >= 0.4 * len(numeric(operator))


def node(operator: str, count: int, version: int = 18, **attributes: object) -> Node:
    names = tuple(f"x{index}" for index in range(count))
    return Node("n", operator, names, ("y",), attributes, version=version)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


OTHER = {
    "no rows": (node("Add", 2), [floats(0, 4), floats(4)]),
    "many elements and a scalar": (node("Mul", 2), [floats(513), floats(1)]),
    "few elements and a scalar": (node("Sub", 2), [floats(1, 1), floats(512)]),
    "a scalar for every element": (node("Add", 2), [floats(1, 1), floats(1)]),
    "one of a shape": (node("Less", 2), [floats(3, 4), floats(3, 1)]),
    "few that are chosen": (node("Where", 3), [floats(6) > 0, floats(6), floats(1)]),
    "limits": (node("Clip", 3), [floats(6), np.float32(-0.5), np.float32([0.5])]),
    "least": (node("Clip", 2), [floats(600), np.float32(-0.5)]),
    "a scalar": (node("Mul", 2), [floats(), floats(3, 1, 2)]),
    "integers by zero": (node("Div", 2), [ints(5, -7, 0, -9), ints(0, 2, 0, -4)]),
    "no limits": (node("Clip", 1), [floats(5)]),
    "slice backward": (node("Slice", 5), [floats(5, 4), ints(-1), ints(-99), ints(0), ints(-2)]),
    "slice of many rows": (node("Slice", 4), [floats(999, 4), ints(1), ints(3), ints(-1)]),
    "slice of rows": (node("Slice", 4), [floats(9, 4), ints(-3), ints(99), ints(0)]),
    "slice of both": (node("Slice", 4), [floats(9, 4), ints(1, 2), ints(5, 3), ints(0, 1)]),
    "slice of nothing": (node("Slice", 4), [floats(5, 4), ints(3), ints(1), ints(1)]),
    "slice of columns": (node("Slice", 4), [floats(5, 4), ints(2), ints(4), ints(-1)]),
    "concat of nothing": (node("Concat", 3, axis=1), [floats(2, 0), floats(2, 3), floats(2, 1)]),
    "transpose": (node("Transpose", 1, perm=(2, 0, 1)), [floats(3, 1, 5)]),
    "expand": (node("Expand", 2), [floats(3, 1), ints(2, 1, 4)]),
    "gather of nothing": (node("Gather", 2, axis=0), [floats(3, 2), ints()]),
    "gather many rows": (node("Gather", 2, axis=1), [floats(99, 3), ints(*range(3)) - 3]),
    "gather by int32": (node("Gather", 2, axis=0), [ints(4, 5, 6), np.int32([[2, -1]])]),
    "gather a scalar": (node("Gather", 2, axis=0), [ints(4, 5, 6), np.array(-2)]),
    "gather columns": (node("Gather", 2, axis=1), [floats(3, 2), ints(-1, 0)]),
    "no tuples": (node("GatherND", 2), [floats(3, 2), np.zeros((0, 1), np.int64)]),
    "scatter nothing": (
        node("ScatterND", 3), [floats(3, 2), np.zeros((0, 1), np.int64), floats(0, 2)],
    ),
    "scatter rows": (node("ScatterND", 3), [floats(3, 2), ints(-1, 0)[:, None], floats(2, 2)]),
    "reduce nothing": (node("ReduceProd", 2, keepdims=0), [floats(0, 2), ints(1)]),
    "softmax in the middle": (node("Softmax", 1, axis=1), [floats(2, 5, 3)]),
    "product": (node("MatMul", 2), [floats(2, 5, 7), floats(7, 33)]),
    "products": (node("MatMul", 2), [floats(2, 5, 7), floats(2, 7, 3)]),
    "no products": (node("MatMul", 2), [floats(0, 7), floats(7, 3)]),
    "gemm": (
        node("Gemm", 3, transB=1, alpha=0.5, beta=2.0), [floats(6, 19), floats(21, 19), floats(21)],
    ),
    "gemm of columns": (node("Gemm", 3), [floats(6, 19), floats(19, 5), floats(6, 1)]),
    "convolution": (
        node("Conv", 3, pads=(1, 0, 2, 1), dilations=(1, 2)),
        [floats(3, 5, 9, 8), floats(6, 5, 3, 2), floats(6)],
    ),
    "convolution of no image": (node("Conv", 2), [floats(0, 5, 9, 8), floats(6, 5, 3, 3)]),
    "transposed convolution": (
        node("ConvTranspose", 3, strides=(2, 3)),
        [floats(2, 5, 4, 3), floats(5, 7, 2, 3), floats(7)],
    ),
    "where": (node("Where", 3), [floats(3, 1) > 0, floats(1, 4), floats()]),
    "unsqueeze": (node("Unsqueeze", 2), [floats(3), ints(0, -1)]),
    "reshape": (node("Reshape", 2), [floats(4, 6), ints(0, -1, 2)]),
    "flags": (node("NonZero", 1), [floats(3, 4) > 0]),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(OTHER))
def test_operators_agree_with_numpy(what: str) -> None:
    made, inputs = OTHER[what]
    wanted = object_kernel(made, [_type(made, inputs)]).run(inputs)
    found = alone(Case(what, made, tuple(inputs), ()))
    assert found is not None
    assert_equal(found[0], wanted[0], what)


def _type(made: Node, inputs: list[np.ndarray]) -> object:
    from tightship.graph import DType

    return DType.of(inputs[-1].dtype if made.operator == "Where" else inputs[0].dtype)


LEFT = {
    "an index outside": (node("Gather", 2, axis=0), [floats(3), ints(3)]),
    "an index far before": (node("Gather", 2, axis=0), [floats(3), ints(-4)]),
    "an index among many": (node("Gather", 2, axis=0), [floats(3), np.full(2000, 3)]),
    "no such axis": (node("Gather", 2, axis=4), [floats(3), ints(0)]),
    "shapes that do not fit": (node("Add", 2), [floats(3), floats(2)]),
    "other types": (node("Add", 2), [floats(3), ints(1, 2, 3)]),
    "another count": (node("Reshape", 2), [floats(6), ints(4)]),
    "no owner": (node("RoiAlign", 3), [floats(1, 2, 4, 4), floats(1, 4), ints(1)]),
    "a large product": (node("MatMul", 2), [floats(99, 99), floats(99, 99)]),
    "gaps": (node("Neg", 1), [floats(6)[::2]]),
    "a long expansion": (node("Expand", 2), [floats(1), ints(1 << 20)]),
}


@pytest.mark.parametrize("what", sorted(LEFT))
def test_operands_that_are_not_covered_are_left(what: str) -> None:
    made, inputs = LEFT[what]
    assert alone(Case(what, made, tuple(inputs), ())) is None


def test_memory_of_an_operator_is_bounded() -> None:
    program, bound = SizedProgram(), DynamicMemory(DynamicPools(0), 1000)
    program.add(sized_operator(node("Neg", 1)), [0], [1], [])
    context = SizedContext(program, None)
    for count, place in ((100, 1), (1000, 0), (100, 1)):
        context.set(0, floats(count))
        assert context.run((0, 1), False, StopFlag(), None, bound, 1)[0] == place
    context.clear()
    assert bound.live_bytes == 0
