"""Kernels of NumPy's tier that are made for the shapes that a run finds."""

import numpy as np
import pytest

import tightship
from tests.engine.kernels.sized.checks import assert_equal, numeric
from tests.process_memory import data_bytes
from tests.zoo.net import Net
from tightship.engine.kernels import object_kernel
from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.kernels.sized import by_shape as module
from tightship.engine.kernels.sized.by_shape import KERNELS_MAX, by_shape
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


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the first input of every kernel that is made."""
    shapes: list[tuple[int, ...]] = []
    make = module.numpy_kernel

    def counted(node, inputs, outputs, constants):
        shapes.append(inputs[0].static_shape)
        return make(node, inputs, outputs, constants)

    monkeypatch.setattr(module, "numpy_kernel", counted)
    return shapes


def test_warm_rounds_make_no_kernel_whatever_the_order_of_shapes_and_models(
    made: list[tuple[int, ...]],
) -> None:
    cases = [regions(count) for count in (1, 5, 8)]
    with tightship.load(cases[0][0]) as one, tightship.load(cases[0][0]) as other:
        rounds = [(model, feeds) for model in (one, other) for _, feeds in cases]
        for model, feeds in rounds:
            model.run(feeds)
        count = len(made)
        assert count > 0
        for order in (rounds[::-1], rounds[1:] + rounds[:1], rounds):
            for model, feeds in order:
                model.run(feeds)
        assert len(made) == count


def test_kernels_are_kept_for_the_latest_shapes_only(made: list[tuple[int, ...]]) -> None:
    run = by_shape(Node("n", "LeakyRelu", ("x",), ("y",), version=16), [DType.FLOAT32])
    for length in [*range(1, KERNELS_MAX + 2), KERNELS_MAX + 1, 1]:
        (found,) = run([np.full(length, -1, np.float32)])
        assert_equal(found, np.full(length, -0.01, np.float32), str(length))
    assert len(made) == KERNELS_MAX + 2
    assert made[-1] == (1,)


def test_a_process_holds_no_more_after_a_thousand_rounds_of_many_lengths() -> None:
    lengths = 3 * KERNELS_MAX
    rounds = np.random.default_rng(1).integers(0, lengths + 1, 1_200)
    net = Net(opset=17)
    chosen = net.input("chosen", np.ones(lengths, bool))
    net.output(net("LeakyRelu", net("Compress", net.normal("x", lengths, 9), chosen, axis=0)))
    case = net.case()
    before = 0
    with tightship.load(case.model) as loaded:
        for number, count in enumerate(rounds):
            loaded.run({**case.feeds, "chosen": np.arange(lengths) < count})
            if number == 200:
                before = data_bytes()
        assert data_bytes() - before <= 1 << 20


def test_small_operands_of_equal_shapes_have_kernels_of_their_own(
    made: list[tuple[int, ...]],
) -> None:
    run = by_shape(Node("n", "Expand", ("x", "shape"), ("y",), version=13), [DType.FLOAT32])
    x, shape = np.ones((1, 80), np.float32), np.array([2, 80])
    (first,) = run([x, shape])
    shape[0] = 3  # memory that a kernel of the past must not look at
    (second,) = run([x, shape])
    shape[0] = 2
    (third,) = run([2 * x, shape])
    assert [first.shape, second.shape, third.shape] == [(2, 80), (3, 80), (2, 80)]
    np.testing.assert_array_equal(third, np.full((2, 80), 2, np.float32))
    assert len(made) == 2


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
