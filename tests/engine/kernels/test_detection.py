"""NonMaxSuppression, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest

import tightship
from tests.zoo.net import Case, Net


def suppressed(seed: int, *, centred: int = 0, boxes: int = 60, least: float = 0.3) -> Case:
    """Boxes of two images, of three classes; some overlap, some are empty or turned around."""
    random = np.random.default_rng(seed)
    net = Net(opset=17)
    places = random.uniform(-1, 1, (2, boxes, 4)).astype(np.float32)
    scores = random.integers(0, 20, (2, 3, boxes)).astype(np.float32) / 20
    limits = [net.ints(12), net.constant(np.array([0.3], np.float32)),
              net.constant(np.array([least], np.float32))]  # fmt: skip
    net.output(
        net("NonMaxSuppression", net.input("boxes", places), net.input("scores", scores),
            *limits, center_point_box=centred)
    )  # fmt: skip
    return net.case()


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_the_boxes_are_those_that_onnxruntime_takes(seed: int, centred: int) -> None:
    case = suppressed(seed, centred=centred)
    (wanted,) = onnxruntime.InferenceSession(case.model).run(None, case.feeds)
    with tightship.load(case.model) as model:
        (found,) = model.run(case.feeds).values()
    assert len(wanted) > 6
    np.testing.assert_array_equal(found, wanted)


def test_no_box_may_be_left() -> None:
    with tightship.load(suppressed(1, least=2.0).model) as model:
        (found,) = model.run(suppressed(1).feeds).values()
    assert (found.dtype, found.shape) == (np.int64, (0, 3))
