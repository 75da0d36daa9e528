"""ONNX's node suite: every model is read, and its types and known values are those expected."""

import string
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase

from tightship.frontend.onnx import read_bytes
from tightship.frontend.onnx.element import DTYPES
from tightship.graph import Graph
from tightship.graph.operators import named

FORESEEN = ("ConstantOfShape", "Identity", "Shape", "Size")


def array_of(stored: Any) -> Any:
    """Test data as an array where it is one; a sequence as it is."""
    return numpy_helper.to_array(stored) if isinstance(stored, TensorProto) else stored


def read_case(case: TestCase) -> Graph:
    """The model, its inputs bound to the shapes of its first data set."""
    inputs = zip(case.model.graph.input, case.data_sets[0][0], strict=False)
    shapes = {
        value.name: np.shape(array_of(stored))
        for value, stored in inputs
        if value.type.HasField("tensor_type")
    }
    return read_bytes(case.model.SerializeToString(), shapes=shapes)


def with_known_inputs(case: TestCase) -> onnx.ModelProto:
    """The model with the first data set in place of its inputs."""
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    for value, stored in zip(case.model.graph.input, case.data_sets[0][0], strict=True):
        model.graph.initializer.append(numpy_helper.from_array(array_of(stored), value.name))
    return model


@pytest.mark.parametrize("initial", string.ascii_lowercase)
def test_types_are_those_of_the_expected_outputs(
    initial: str, node_cases: Mapping[str, TestCase]
) -> None:
    for name in (name for name in node_cases if name.startswith(f"test_{initial}")):
        case = node_cases[name]
        graph = read_case(case)
        for declared, stored in zip(case.model.graph.output, case.data_sets[0][1], strict=False):
            value, expected = graph.value(declared.name), array_of(stored)
            if declared.type.HasField("tensor_type"):
                assert value.dtype is DTYPES[declared.type.tensor_type.elem_type], name
            if value.is_static:
                assert value.static_shape == np.shape(expected), name


def test_no_case_is_left_out(node_cases: Mapping[str, TestCase]) -> None:
    assert len(node_cases) >= 1500
    assert all(name[5] in string.ascii_lowercase for name in node_cases)


@pytest.mark.parametrize("operator", [*sorted(named("known")), *FORESEEN])
def test_known_values_are_the_expected_outputs(
    operator: str, node_cases: Mapping[str, TestCase]
) -> None:
    found = 0
    for name, case in node_cases.items():
        nodes = case.model.graph.node
        tensors = all(not isinstance(array_of(s), list) for s in case.data_sets[0][0])
        if len(nodes) != 1 or nodes[0].op_type != operator or not tensors:
            continue
        graph = read_bytes(with_known_inputs(case).SerializeToString())
        for output, stored in zip(graph.outputs, case.data_sets[0][1], strict=True):
            constant = graph.known.get(output)
            if constant is not None:
                found += 1
                expected, array = array_of(stored), constant.array()
                assert array.dtype == expected.dtype, name
                assert array.shape == expected.shape, name
                rtol = 0 if array.dtype.kind in "biu" else 1e-5
                np.testing.assert_allclose(array, expected, rtol=rtol, err_msg=name)
    assert found > 0
