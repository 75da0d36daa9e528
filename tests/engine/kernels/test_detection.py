"""NonMaxSuppression, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest

import tightship
from tests.zoo.detection import Sizes, ssdlite
from tests.zoo.net import Case, Net
from tightship import _core
from tightship.engine.kernels import object_kernel
from tightship.graph import Node


def suppressed(
    seed: int,
    *,
    centred: int = 0,
    boxes: int = 60,
    least: float = 0.3,
    most: int = 12,
    spread: float = 1,
) -> Case:
    """Boxes of two images, of three classes; some overlap, some are empty or turned around."""
    random = np.random.default_rng(seed)
    net = Net(opset=17)
    places = random.uniform(-1, 1, (2, boxes, 4)).astype(np.float32)
    places[..., :2] *= spread
    scores = random.integers(0, 20, (2, 3, boxes)).astype(np.float32) / 20
    limits = [net.ints(most), net.constant(np.array([0.3], np.float32)),
              net.constant(np.array([least], np.float32))]  # fmt: skip
    net.output(
        net("NonMaxSuppression", net.input("boxes", places), net.input("scores", scores),
            *limits, center_point_box=centred)
    )  # fmt: skip
    return net.case()


def wanted_of(case: Case) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(case.model).run(None, case.feeds)


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("boxes", [60, 1, 17, 700])
def test_the_boxes_are_those_that_onnxruntime_takes(seed: int, centred: int, boxes: int) -> None:
    spread, most = (20, 400) if boxes == 700 else (1, 12)
    case = suppressed(seed, centred=centred, boxes=boxes, most=most, spread=spread)
    (wanted,) = wanted_of(case)
    with tightship.load(case.model) as model:
        (found,) = model.run(case.feeds).values()
    assert len(wanted) > {60: 6, 1: 0, 17: 3, 700: 300}[boxes]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("most", [0, -3])
def test_no_box_may_be_asked_for(most: int) -> None:
    with tightship.load(suppressed(1, most=most).model) as model:
        (found,) = model.run(suppressed(1).feeds).values()
    assert (found.dtype, found.shape) == (np.int64, (0, 3))


def test_no_box_may_be_left() -> None:
    with tightship.load(suppressed(1, least=2.0).model) as model:
        (found,) = model.run(suppressed(1).feeds).values()
    assert (found.dtype, found.shape) == (np.int64, (0, 3))


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 2, 0)])
def test_there_may_be_no_image_no_class_and_no_box(shape: tuple[int, int, int]) -> None:
    images, _, boxes = shape
    node = Node("n", "NonMaxSuppression", ("b", "s", "m"), ("y",), version=11)
    operands = [
        np.zeros((images, boxes, 4), np.float32),
        np.zeros(shape, np.float32),
        np.array([5]),
    ]
    (found,) = object_kernel(node).run(operands)
    assert (found.dtype, found.shape) == (np.int64, (0, 3))


def test_scores_that_are_no_number_come_last_and_zeros_are_equal() -> None:
    boxes = np.array([[[i, 0, i + 0.5, 1] for i in range(4)]], np.float32)
    scores = np.array([[[np.nan, -0.0, 0.0, -1]]], np.float32)
    node = Node("n", "NonMaxSuppression", ("b", "s", "m"), ("y",), version=11)
    (found,) = object_kernel(node).run([boxes, scores, np.array([9])])
    assert found[:, 2].tolist() == [1, 2, 3, 0]


def test_the_core_refuses_operands_that_do_not_fit() -> None:
    boxes, scores = np.zeros((1, 4, 4), np.float32), np.zeros((1, 2, 5), np.float32)
    with pytest.raises(ValueError, match="not those of each class"):
        _core.suppression_bytes(boxes, scores, 3)
    rows, scratch = _core.suppression_bytes(boxes, scores[..., :4].copy(), 3)
    room = np.zeros(rows - 1, np.uint8), np.zeros(scratch, np.uint8)
    with pytest.raises(ValueError, match="too little room"):
        _core.suppress(boxes, scores[..., :4].copy(), 3, 0.5, None, False, *room)


def test_a_detector_finds_what_onnxruntime_finds() -> None:
    case = ssdlite(sizes=Sizes(image=64, width=8, depth=3, classes=5, candidates=20, kept=9))
    wanted = wanted_of(case)
    with tightship.load(case.model) as model:
        found = list(model.run(case.feeds).values())
        assert {step.implementation for step in model.plan.steps if step.kernel == "reference"} <= {
            "Cast", "ConstantOfShape", "Concat", "Equal", "Gather", "If", "Min", "NonZero", "Shape",
            "Size", "Slice", "Squeeze", "TopK",
        }  # fmt: skip
    assert len(wanted[0]) == 9
    for result, expected in zip(found, wanted, strict=True):
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
