"""Every kernel against ONNX's backend suite, out of place and in place."""

import numpy as np

from tests.engine.kernels.node_suite import (
    Case,
    assert_close,
    cases,
    kernel_for,
    poisoned,
    run,
    scratch_for,
)
from tightship.engine.kernels import numpy_kernel
from tightship.graph import DType, Node, Value

COVERED = 1030
"""Least number of covered models, of the suite's 1,462 models of a single node in onnx 1.23.2."""


def _covered() -> list[Case]:
    return [
        case
        for case in cases()
        if case.is_numeric and kernel_for(case.node, case.inputs, case.outputs) is not None
    ]


def test_the_suites_results_come_out_of_every_kernel_that_covers_a_model():
    wrong = []
    for case in _covered():
        kernel = kernel_for(case.node, case.inputs, case.outputs)
        assert kernel is not None
        try:
            assert_close(run(kernel, case.inputs, case.outputs), case.outputs)
        except AssertionError as error:
            wrong.append(f"{case.name} ({kernel.name}): {error}")
    assert not wrong, "\n".join(wrong)


def test_the_numpy_tier_covers_most_of_the_suite():
    assert len(_covered()) >= COVERED


def test_inputs_are_left_as_they_are():
    for case in _covered():
        kernel = kernel_for(case.node, case.inputs, case.outputs)
        assert kernel is not None
        inputs = [None if x is None else np.array(x, order="C") for x in case.inputs]
        outputs = [None if x is None else poisoned(x) for x in case.outputs]
        kernel.run(inputs, outputs, scratch_for(kernel))
        for array, given in zip(inputs, case.inputs, strict=True):
            assert array is None or array.tobytes() == np.ascontiguousarray(given).tobytes()


def test_sharing_a_buffer_changes_no_byte():
    shared = 0
    for case in _covered():
        kernel = kernel_for(case.node, case.inputs, case.outputs)
        assert kernel is not None
        expected = run(kernel, case.inputs, case.outputs)
        for output, source in kernel.in_place:
            by_name = {
                name: None if x is None else np.array(x, order="C")
                for name, x in zip(case.node.inputs, case.inputs, strict=True)
            }
            inputs = [by_name[name] for name in case.node.inputs]
            outputs = [None if x is None else poisoned(x) for x in case.outputs]
            like = case.outputs[output]
            buffer = inputs[source]
            assert buffer is not None
            outputs[output] = buffer.reshape(-1).view(like.dtype).reshape(like.shape)
            kernel.run(inputs, outputs, scratch_for(kernel))
            for result, wanted in zip(outputs, expected, strict=True):
                assert result is None or result.tobytes() == wanted.tobytes(), case.name
            shared += 1
    assert shared > 200


def test_unknown_operators_other_domains_and_dynamic_shapes_have_no_kernel():
    static = Value("x", DType.FLOAT32, (2,))
    dynamic = Value("x", DType.FLOAT32, ("batch",))
    for node, value in (
        (Node("n", "Relu", ("x",), ("y",), {}, "com.example", 1), static),
        (Node("n", "NonZero", ("x",), ("y",), {}, "", 13), static),
        (Node("n", "Relu", ("x",), ("y",), {}, "", 14), dynamic),
    ):
        assert numpy_kernel(node, [value], [value], {}) is None


def test_a_slice_whose_starts_are_computed_has_no_kernel():
    index = Value("i", DType.INT64, (1,))
    inputs = [Value("x", DType.FLOAT32, (4,)), index, index]
    node = Node("n", "Slice", ("x", "i", "i"), ("y",), {}, "", 13)
    assert numpy_kernel(node, inputs, [Value("y", DType.FLOAT32, (2,))], {}) is None


def test_a_value_read_twice_is_overwritten_only_in_a_single_pass():
    x = Value("x", DType.FLOAT32, (3,))
    for operator, pairs in (("Mul", ((0, 0), (0, 1))), ("PRelu", ())):
        node = Node("n", operator, ("x", "x"), ("y",), {}, "", 16)
        kernel = numpy_kernel(node, [x, x], [x], {})
        assert kernel is not None
        assert kernel.in_place == pairs
