"""Kernels of NumPy's tier that are made for the shapes that a run finds."""

import numpy as np
import pytest

import tightship
from tests.engine.kernels.sized.checks import assert_equal, numeric
from tests.zoo.net import Net
from tightship.engine.kernels import object_kernel
from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.kernels.sized.by_shape import by_shape
from tightship.graph import DType, Node
from tightship.graph.operators import rows

OPERATORS = sorted(
    name
    for name, row in rows().items()
    if row.numpy and row.shape and not row.objects and not row.numpy.startswith("elementwise.ufunc")
)
IN_PART = {
    "Resize": "sizes from the standard's rules for aspect ratios and regions",
    "Scatter": "the name before opset 11, which the suite has no case of",
    "Dropout": "masks of training",
    "BatchNormalization": "statistics of training",
    "LayerNormalization": "means and deviations as further outputs",
    "OneHot": "depths that are not integers",
}
"""Operators of whose cases less than half run here, and what the others have."""


@pytest.mark.parametrize("operator", OPERATORS)
def test_kernels_agree_with_the_node_suite(operator: str) -> None:
    covered = 0
    for case in numeric(operator):
        types = [None if y is None else DType.of(y.dtype) for y in case.outputs]
        try:
            found = by_shape(case.node, types)(case.inputs)
        except NotCoveredError:
            continue
        for result, wanted in zip(found, case.outputs, strict=True):
            assert_equal(result, wanted, case.name)
        covered += 1
    if operator not in IN_PART:
        assert covered >= max(1, 0.5 * len(numeric(operator)))


def test_a_node_without_known_types_is_left_to_the_next_tier() -> None:
    node = Node("n", "Conv", ("x", "w"), ("y",), version=11)
    with pytest.raises(NotCoveredError):
        by_shape(node, [])
    with pytest.raises(NotCoveredError):
        by_shape(node, [None])
    assert object_kernel(node).name == "onnx.reference"
    assert object_kernel(node, [DType.FLOAT32]).name == "Conv"


def regions(count: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """Convolve, resize and add up as many images as a condition chooses among eight."""
    net = Net(opset=17)
    images = net.normal("images", 8, 3, 6, 6)
    chosen = net.input("chosen", np.arange(8) < count)
    found = net("Compress", images, chosen, axis=0)
    found = net("Conv", found, net.weight(4, 3, 3, 3), net.bias(4), pads=[1] * 4)
    found = net("LeakyRelu", found, alpha=0.1)
    found = net("ConvTranspose", found, net.weight(4, 5, 2, 2), net.bias(5), strides=[2, 2])
    scales = net.constant(np.array([1, 1, 0.5, 0.5], np.float32))
    found = net("Resize", found, "", scales, mode="linear")
    net.output(found, net("GlobalAveragePool", found))
    case = net.case()
    return case.model, case.feeds


@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_layers_run_on_as_many_images_as_data_chooses(count: int) -> None:
    import onnxruntime

    model, feeds = regions(count)
    with tightship.load(model, without=["reference"]) as loaded:
        for _ in range(2):
            found = loaded.run(feeds).values()
            wanted = onnxruntime.InferenceSession(model).run(None, feeds)
            for result, expected in zip(found, wanted, strict=True):
                assert result.shape == expected.shape
                assert result.flags.c_contiguous
                assert result.flags.writeable
                np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [1, 3])
def test_an_output_that_was_expanded_is_an_array_of_its_own(length: int) -> None:
    net = Net(opset=17)
    chosen = net("Compress", net.normal("x", 4, 1), net.input("chosen", np.arange(4) < 2), axis=0)
    net.output(net("Expand", chosen, net.ints(1, length)))
    case = net.case()
    with tightship.load(case.model) as loaded:
        (found,) = loaded.run(case.feeds).values()
    assert found.flags.c_contiguous
    assert found.flags.writeable
    np.testing.assert_array_equal(found, np.repeat(case.feeds["x"][:2], length, axis=1))
