"""RoiAlign, against the node suite and ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest

import tightship
from tests.engine.kernels.sized.checks import assert_agrees_with_suite, ints
from tests.zoo.net import Net
from tightship import _core
from tightship.engine.kernels import object_kernel
from tightship.errors import GraphError
from tightship.graph import Node


def test_kernels_agree_with_the_node_suite() -> None:
    assert_agrees_with_suite("RoiAlign")


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("where", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 2, 3])
def test_regions_are_those_of_onnxruntime(mode: str, where: str, samples: int) -> None:
    """Some lie outside, are turned around, or empty."""
    net = Net(3, opset=16)
    x = net.normal("x", 2, 5, 13, 17)
    regions = net.random.uniform(-8, 40, (30, 4)).astype(np.float32)
    regions[:20, 2:] = regions[:20, :2] + net.random.uniform(0, 20, (20, 2))
    regions[3, 2:] = regions[3, :2]
    if samples == 0:  # ONNX Runtime cannot count the pixels of a region that is turned around
        regions[:, 2:] = np.maximum(regions[:, 2:], regions[:, :2])
    owners = net.input("owners", np.arange(30) % 2)
    net.output(
        net("RoiAlign", x, net.input("regions", regions), owners, mode=mode, output_height=3,
            output_width=4, sampling_ratio=samples, spatial_scale=0.6,
            coordinate_transformation_mode=where)
    )  # fmt: skip
    case = net.case()
    (wanted,) = onnxruntime.InferenceSession(case.model).run(None, case.feeds)
    with tightship.load(case.model) as model:
        assert [step.implementation for step in model.plan.steps] == ["RoiAlign"]
        (found,) = model.run(case.feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


NODE = Node("n", "RoiAlign", ("x", "r", "i"), ("y",), {}, version=16)
IMAGE = np.ones((1, 2, 3, 3), np.float32)


def test_there_may_be_no_region_and_coordinates_that_are_no_numbers() -> None:
    (found,) = object_kernel(NODE).run([IMAGE, np.zeros((0, 4), np.float32), ints()])
    assert found.shape == (0, 2, 1, 1)
    (found,) = object_kernel(NODE).run([IMAGE, np.full((1, 4), np.nan, np.float32), ints(0)])
    assert not found.any()


@pytest.mark.parametrize("owner", [-1, 1])
def test_a_region_of_an_image_that_is_not_there_is_refused(owner: int) -> None:
    with pytest.raises(GraphError, match="not there"):
        object_kernel(NODE).run([IMAGE, np.zeros((1, 4), np.float32), ints(owner)])


def test_the_core_refuses_operands_that_do_not_fit() -> None:
    regions, out = np.zeros((1, 4), np.float32), np.zeros((1, 3, 2, 2), np.float32)
    with pytest.raises(ValueError, match="do not fit"):
        _core.roi_align(IMAGE, regions, ints(0), out, 0, 1.0, False, False)


@pytest.mark.parametrize("attributes", [{}, {"sampling_ratio": 1 << 40}])
def test_a_cell_of_more_samples_than_memory_should_hold_is_refused(attributes: dict) -> None:
    """A region of 2**30 pixels would take 24 bytes for each of them."""
    node = Node("n", "RoiAlign", ("x", "r", "i"), ("y",), attributes, version=16)
    region = np.array([[0, 0, 2**30, 2**30]], np.float32)
    with pytest.raises(GraphError, match="more than 65536 samples"):
        object_kernel(node).run([IMAGE, region, ints(0)])


@pytest.mark.parametrize("is_largest", [False, True])
@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("width", [7, 40])
def test_neither_threads_nor_other_regions_change_a_bit(
    width: int, samples: int, *, is_largest: bool
) -> None:
    """Threads share channels, and take regions together in blocks."""
    random = np.random.default_rng(width)
    image = random.standard_normal((2, 6, 21, width)).astype(np.float32)
    corners = random.uniform(-4, width, (90, 2))
    boxes = np.hstack((corners, corners + random.uniform(-1, 30, (90, 2)))).astype(np.float32)
    owners = random.integers(0, 2, 90)

    def aligned(some: slice, threads: int) -> np.ndarray:
        out = np.full((len(boxes[some]), 6, 7, 5), np.nan, np.float32)
        given = np.ascontiguousarray(boxes[some]), np.ascontiguousarray(owners[some])
        _core.roi_align(image, *given, out, samples, 0.9, True, is_largest, threads)
        return out

    wanted = np.concatenate([aligned(slice(at, at + 1), 1) for at in range(90)])
    for threads in (1, 2, 4):
        np.testing.assert_array_equal(aligned(slice(None), threads), wanted)
