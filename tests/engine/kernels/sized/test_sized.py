"""Kernels on arrays of any shape: ONNX's node suite, other operands, and what they leave."""

import numpy as np
import pytest

from tests.engine.kernels.node_suite import Case
from tests.graph.operators.suite import suite
from tightship.engine.kernels import object_kernel
from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.kernels.reference import reference_kernel
from tightship.graph import Node
from tightship.graph.operators import body, rows

SIZED = sorted(n for n, row in rows().items() if row.objects.startswith("sized."))


def alone(case: Case) -> list[object]:
    """Run a case by the kernel of its row, without `onnx.reference` behind it."""

    def refuse(_: Node) -> object:
        raise NotCoveredError

    return body("objects", case.node.operator)(case.node, refuse)(case.inputs)


def assert_equal(found: object, wanted: object, name: str) -> None:
    if wanted is None:
        assert found is None, name
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), name
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6, err_msg=name)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def numeric(operator: str) -> list[Case]:
    return [
        case for case in suite().get(operator, [])
        if all(o is None or o.dtype.kind in "biuf" for o in (*case.inputs, *case.outputs))
    ]  # fmt: skip


@pytest.mark.parametrize("operator", SIZED)
def test_kernels_agree_with_the_node_suite(operator: str) -> None:
    covered = 0
    for case in numeric(operator):
        found = object_kernel(case.node).run(case.inputs)
        for result, wanted in zip(found, case.outputs, strict=True):
            assert_equal(result, wanted, case.name)
        try:
            alone(case)
        except NotCoveredError:
            continue
        covered += 1
    assert covered >= max(1, 0.6 * len(numeric(operator)))


FLOATS = np.array([[3, -1, 0, 2], [np.nan, 5, -0.0, 5]], np.float32)
EMPTY = np.zeros((2, 0), np.float32)
INDEX = np.array([[1, -1], [0, 0]], np.int64)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


OTHER = {
    "nothing is not zero": ("NonZero", 13, {}, [np.zeros((3, 2), np.int32)]),
    "no element": ("NonZero", 13, {}, [EMPTY]),
    "an empty gather": ("Gather", 13, {"axis": 1}, [FLOATS, np.zeros((0, 2), np.int64)]),
    "tuples in batches": ("GatherND", 13, {"batch_dims": 1}, [FLOATS, INDEX[:, :1]]),
    "no tuples": ("GatherND", 13, {}, [FLOATS, np.zeros((0, 1), np.int64)]),
    "negative places": ("GatherElements", 13, {"axis": 1}, [FLOATS, INDEX]),
    "added twice": ("ScatterND", 18, {"reduction": "add"},
                    [np.ones((3, 2), int), ints(0, 0).reshape(2, 1), np.ones((2, 2), int)]),
    "an axis before opset 13": ("Squeeze", 11, {"axes": (1,)}, [np.ones((2, 1, 3), np.float64)]),
    "axes in any order": ("Unsqueeze", 13, {}, [FLOATS, ints(-1, 0)]),
    "backwards": ("Slice", 13, {}, [FLOATS, ints(-1), ints(-100), ints(1), ints(-2)]),
    "past the end": ("Slice", 10, {}, [FLOATS, ints(1), ints(2**62)]),
    "attributes": ("Slice", 1, {"starts": (0,), "ends": (1,), "axes": (1,)}, [FLOATS]),
    "parts": ("Split", 13, {"axis": 1}, [FLOATS, ints(1, 3)]),
    "negative quotients": ("Div", 14, {}, [np.int8([-7, 7]), np.int8([2, -2])]),
    "unsigned quotients": ("Div", 14, {}, [np.uint8([7, 200]), np.uint8([2, 3])]),
    "one limit": ("Clip", 13, {}, [FLOATS, None, np.float32(2).reshape(())]),
    "no rows": ("ReduceMax", 13, {"axes": (0,), "keepdims": 0}, [FLOATS]),
    "down": ("Range", 11, {}, [np.array(9), np.array(2), np.array(-3)]),
    "no numbers": ("Range", 11, {}, [np.array(2), np.array(2), np.array(1)]),
    "no product": ("MatMul", 13, {}, [np.zeros((0, 4), np.float32), FLOATS.T]),
    "a condition shorter than the axis": ("Compress", 11, {"axis": 1},
                                          [FLOATS, np.array([False, True])]),
    "elements by their first places": ("Unique", 11, {"sorted": 0}, [ints(4, 1, 4, 3, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(OTHER))
def test_kernels_agree_with_the_reference(what: str) -> None:
    operator, version, attributes, inputs = OTHER[what]
    count = {"Split": 2, "Unique": 4}.get(operator, 1)
    names = tuple("" if each is None else f"x{index}" for index, each in enumerate(inputs))
    outputs = tuple(f"y{index}" for index in range(count))
    node = Node("n", operator, names, outputs, attributes, version=version)
    wanted = reference_kernel(node)(inputs)
    found = alone(Case(what, node, tuple(inputs), ()))
    for result, expected in zip(found, wanted, strict=True):
        assert_equal(result, expected, what)


@pytest.mark.parametrize("is_largest", [0, 1])
def test_equal_elements_are_ranked_by_index_and_a_nan_is_the_largest(is_largest: int) -> None:
    node = Node("n", "TopK", ("x", "k"), ("v", "i"), {"largest": is_largest}, version=11)
    values, places = object_kernel(node).run([FLOATS, ints(3)])
    wanted = [[0, 3, 2], [0, 1, 3]] if is_largest else [[1, 2, 3], [2, 1, 3]]
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(FLOATS, np.array(wanted), 1))


def test_strings_and_narrow_floats_go_to_the_reference() -> None:
    node = Node("n", "Gather", ("x", "i"), ("y",), {}, version=13)
    words = np.array(["a", "b"], object)
    assert object_kernel(node).run([words, ints(1)])[0].tolist() == ["b"]
