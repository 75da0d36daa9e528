from typing import Any

import numpy as np
import pytest

from tests.engine.kernels.node_suite import assert_close, cases, kernel_for
from tightship.engine.kernels import reference_kernel
from tightship.errors import GraphError
from tightship.graph import DType, Graph, Inline, Node

RANDOM = "test_bernoulli"
NEEDS_PILLOW = "test_image_decoder"
REFUSED_BY_ONNX = {"test_if_opt", "test_scan_sum"}
"""Models that `onnx.reference` cannot run by itself either."""


def _agrees(actual: Any, expected: Any) -> bool:
    if expected is None:
        return True
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(_agrees, actual, expected))
    if expected.dtype.kind in "OUS":
        return bool(actual.tolist() == expected.astype(object).tolist())
    assert_close([actual], [expected])
    return True


def test_what_numpy_does_not_cover_the_reference_runs():
    wrong = []
    for case in cases():
        if case.name.startswith((RANDOM, NEEDS_PILLOW)) or case.name in REFUSED_BY_ONNX:
            continue
        if case.is_numeric and kernel_for(case.node, case.inputs, case.outputs) is not None:
            continue
        captures = [None for graph in case.node.subgraphs for _ in graph.captures]
        results = reference_kernel(case.node)([*case.inputs, *captures])
        if not all(map(_agrees, results, case.outputs)):
            wrong.append(case.name)
    assert not wrong


def _choice() -> Node:
    def branch(name: str, operator: str) -> Graph:
        node = Node(name, operator, ("x", "y"), (f"{name}_out",), {}, "", 13)
        return Graph(name, (), node.outputs, {}, (node,), captures=("x", "y"))

    branches = {"then_branch": branch("a", "Add"), "else_branch": branch("s", "Sub")}
    return Node("choose", "If", ("c",), ("z",), branches, "", 13)


@pytest.mark.parametrize(("chosen", "expected"), [(True, 5), (False, -1)])
def test_captures_follow_the_inputs(chosen: bool, expected: int):
    x, y = np.array([2], np.int64), np.array([3], np.int64)
    kernel = reference_kernel(_choice())
    assert kernel([np.array(chosen), x, y, x, y])[0].tolist() == [expected]


def test_constants_of_a_subgraph_travel_with_it():
    add = Node("add", "Add", ("x", "one"), ("r",), {}, "", 13)
    body = Graph("b", (), ("r",), {}, (add,), {"one": Inline(np.array([1.0]))}, captures=("x",))
    node = Node("if", "If", ("c",), ("z",), {"then_branch": body, "else_branch": body}, "", 13)
    x = np.array([2.0])
    assert reference_kernel(node)([np.array(True), x, x])[0].tolist() == [3]


def test_absent_inputs_and_outputs_keep_their_places():
    node = Node("u", "Unique", ("x",), ("y", "", "inverse"), {"sorted": 1}, "", 11)
    values, absent, inverse = reference_kernel(node)([np.array([3, 1, 3])])
    assert values.tolist() == [1, 3]
    assert absent is None
    assert inverse.tolist() == [1, 0, 1]


def test_an_empty_list_attribute_takes_its_type_from_the_schema():
    node = Node("t", "Transpose", ("x",), ("y",), {"perm": ()}, "", 13)
    assert reference_kernel(node)([np.array(4.0)])[0].tolist() == 4


def test_strings_and_sequences_pass_through():
    concat = Node("c", "StringConcat", ("x", "y"), ("z",), {}, "", 20)
    x = np.array(["a", "b"], object)
    (joined,) = reference_kernel(concat)([x, x])
    assert joined.dtype == DType.STRING.numpy
    assert joined.tolist() == ["aa", "bb"]
    make = Node("s", "SequenceConstruct", ("x", "y"), ("z",), {}, "", 11)
    (sequence,) = reference_kernel(make)([x, x])
    assert [part.tolist() for part in sequence] == [["a", "b"]] * 2


@pytest.mark.parametrize("operator", ["NoSuchOperator", "MatMul"])
def test_a_failure_names_the_node_and_its_operator(operator: str):
    node = Node("here", operator, ("x", "y"), ("z",), {}, "", 13)
    with pytest.raises(GraphError, match=rf"`here` \(ai.onnx {operator}, opset 13\)"):
        reference_kernel(node)([np.ones((2, 3)), np.ones((2, 3))])


def test_importing_the_kernels_does_not_import_onnx():
    import subprocess
    import sys

    code = "import sys, tightship.engine.kernels as k; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_value_may_be_read_twice():
    node = Node("m", "Mul", ("x", "x"), ("y",), {}, "", 13)
    assert reference_kernel(node)([np.array(3.0), np.array(3.0)])[0] == 9
