"""Checks of kernels on arrays of any shape: against ONNX's node suite and its reference."""

from collections.abc import Mapping, Sequence

import numpy as np

from tests.engine.kernels.node_suite import Case
from tests.graph.operators.suite import suite
from tightship.engine.kernels import object_kernel
from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.kernels.reference import reference_kernel
from tightship.graph import Node
from tightship.graph.operators import body, rows

FLOATS = np.array([[3, -1, 0, 2], [np.nan, 5, -0.0, 5]], np.float32)
EMPTY = np.zeros((2, 0), np.float32)
INDEX = np.array([[1, -1], [0, 0]], np.int64)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def of_module(name: str) -> list[str]:
    """The operators whose kernels on arrays of any shape are in a module."""
    return sorted(n for n, row in rows().items() if row.objects.startswith(f"sized.{name}."))


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


def assert_agrees_with_suite(operator: str) -> None:
    """Run every case of numbers; most of them must need no `onnx.reference`."""
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


Other = tuple[str, int, Mapping[str, object], Sequence[object]]
"""Operator, opset, attributes and operands."""


def assert_agrees_with_reference(what: str, other: Other) -> None:
    operator, version, attributes, inputs = other
    count = {"Split": 2, "Unique": 4}.get(operator, 1)
    names = tuple("" if each is None else f"x{index}" for index, each in enumerate(inputs))
    outputs = tuple(f"y{index}" for index in range(count))
    node = Node("n", operator, names, outputs, attributes, version=version)
    wanted = reference_kernel(node)(inputs)
    found = alone(Case(what, node, tuple(inputs), ()))
    for result, expected in zip(found, wanted, strict=True):
        assert_equal(result, expected, what)
