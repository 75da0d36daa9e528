"""Convolutions over as many images as only the run knows, on primitives of the cache."""

import threading

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.zoo.oracle import expected
from tightship import load, primitive_cache_statistics
from tightship._core import HAS_ONEDNN
from tightship.engine.interruption import interrupted_by
from tightship.engine.kernels.sized.by_shape import by_shape
from tightship.engine.library import open_library
from tightship.engine.lower.onednn import sized_convolution as module
from tightship.engine.lower.onednn.sized_convolution import IMAGES, sized_convolution
from tightship.errors import OutOfMemoryError, StoppedError
from tightship.graph import DType, Node

pytestmark = pytest.mark.skipif(not HAS_ONEDNN, reason="built without oneDNN")
TYPES = [DType.FLOAT32]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small operands are worth a program, too."""
    open_library()
    monkeypatch.setattr(module, "OPERATIONS_MIN", 0)


def left(_):
    raise AssertionError("The step was left to NumPy.")


def node(operator, operands, **attributes):
    names = ("x", "w", "b")[:operands]
    return Node("c", operator, names, ("y",), attributes, "", 17)


def arrays(*shapes):
    random = np.random.default_rng(0)
    return [random.standard_normal(shape, np.float32) for shape in shapes]


CASES = {
    "padded": ("Conv", (16, 9, 11), (8, 16, 3, 3), {"pads": (1, 1, 1, 1)}),
    "strides and dilations": (
        "Conv", (5, 12, 13), (7, 5, 3, 3), {"strides": (2, 3), "dilations": (2, 1)},
    ),
    "groups": ("Conv", (8, 6, 6), (8, 4, 3, 3), {"group": 2}),
    "depthwise": ("Conv", (16, 8, 8), (16, 1, 3, 3), {"group": 16, "auto_pad": "SAME_UPPER"}),
    "one dimension": ("Conv", (16, 40), (8, 16, 5), {"pads": (2, 2)}),
    "three dimensions": ("Conv", (4, 5, 6, 7), (8, 4, 3, 3, 3), {}),
    "transposed": ("ConvTranspose", (8, 5, 6), (8, 6, 2, 2), {"strides": (2, 2)}),
    "transposed groups": (
        "ConvTranspose", (8, 5, 6), (8, 3, 3, 3),
        {"group": 2, "strides": (2, 1), "pads": (1, 0, 1, 0), "output_padding": (1, 0)},
    ),
}  # fmt: skip


FAST = ("padded", "one dimension", "transposed")
"""Cases that oneDNN has a fast primitive for on every processor."""


@pytest.mark.parametrize("count", [1, IMAGES - 1, IMAGES, IMAGES + 1, 3 * IMAGES])
@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_numpy(case, count):
    operator, image, weights, attributes = CASES[case]
    channels = weights[1] * attributes.get("group", 1) if operator != "Conv" else weights[0]
    for shapes in ([(count, *image), weights], [(count, *image), weights, (channels,)]):
        each, operands = node(operator, len(shapes), **attributes), arrays(*shapes)
        (wanted,) = by_shape(each, TYPES)(operands)
        run = sized_convolution(each, 1, left if case in FAST else by_shape(each, TYPES))
        for _ in range(2):
            (found,) = run(operands)
            np.testing.assert_allclose(found, wanted, 1e-4, 1e-4)


def test_operands_may_have_gaps_and_other_threads_may_run_at_once():
    each = node("Conv", 3, pads=(1, 1, 1, 1))
    run = sized_convolution(each, 2, left)
    x, w, b = arrays((21, 2 * 16, 7, 7), (8, 16, 3, 3), (8,))
    operands = [x[:, ::2], w, b]
    (wanted,) = by_shape(each, TYPES)(operands)
    failed = []

    def check(first):
        for count in range(first, 21, 4):
            (found,) = run([operands[0][:count], w, b])
            if not np.allclose(found, wanted[:count], 1e-4, 1e-4):
                failed.append(count)

    threads = [threading.Thread(target=check, args=(first,)) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.parametrize(
    "operands",
    [
        [np.ones((2, 3, 5, 5)), np.ones((4, 3, 3, 3))],
        [np.ones((2, 3, 5, 5), np.float32), np.ones((4, 3, 3, 3))],
        [np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)],
    ],
    ids=["float64", "mixed", "no axes"],
)
def test_other_operands_are_left(operands):
    run = sized_convolution(node("Conv", 2), 1, lambda _: ["left"])
    assert run(operands) == ["left"]


def test_no_images_have_a_result_without_elements():
    operands = arrays((0, 3, 5, 5), (4, 3, 3, 3))
    each = node("Conv", 2)
    (found,) = sized_convolution(each, 1, by_shape(each, TYPES))(operands)
    assert found.shape == (0, 4, 3, 3)


def test_a_run_can_be_stopped_between_calls():
    asked = []

    def check():
        asked.append(None)
        if len(asked) == 3:
            raise StoppedError("stopped")

    run = sized_convolution(node("Conv", 2), 1, left)
    operands = arrays((9 * IMAGES, 3, 5, 5), (4, 3, 3, 3))
    with interrupted_by(check), pytest.raises(StoppedError):
        run(operands)
    assert len(asked) == 3


def chosen(channels=16, side=12):
    """Return a model that convolves those images whose flag is set, and twice as many filters."""
    (weights,) = arrays((2 * channels, channels, 3, 3))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Compress", ["x", "flags"], ["chosen"], axis=0),
            helper.make_node("Conv", ["chosen", "w"], ["y"], pads=[1] * 4),
        ],
        "chosen",
        [
            value("x", TensorProto.FLOAT, [20, channels, side, side]),
            value("flags", TensorProto.BOOL, [20]),
        ],
        [value("y", TensorProto.FLOAT, ["n", 2 * channels, side, side])],
        [numpy_helper.from_array(weights, "w")],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


def feeds(count, seed=0):
    random = np.random.default_rng(seed)
    return {
        "x": random.standard_normal((20, 16, 12, 12), np.float32),
        "flags": random.permutation(np.arange(20) < count),
    }


def test_warm_runs_compile_nothing_whatever_the_number_of_images():
    model = chosen()
    loaded = load(model)
    counts = [3, 20, 8, 0, 11, 1]
    for count in counts:
        (wanted,) = expected(model, feeds(count)).values()
        np.testing.assert_allclose(loaded.run(feeds(count))["y"], wanted, 1e-4, 1e-4)
    before = primitive_cache_statistics()
    for seed, count in enumerate([*counts[::-1], 9, 17]):
        loaded.run(feeds(count, seed))
    after = primitive_cache_statistics()
    assert after.misses == before.misses
    assert after.entries == before.entries


def test_memory_of_a_step_counts_towards_the_bound():
    with load(chosen(), dynamic_memory="64KiB") as loaded, pytest.raises(OutOfMemoryError):
        loaded.run(feeds(20))


def test_the_step_is_numpys_without_onednn():
    with load(chosen(), without=("onednn",)) as loaded:
        before = primitive_cache_statistics().entries
        (wanted,) = expected(chosen(), feeds(5)).values()
        np.testing.assert_allclose(loaded.run(feeds(5))["y"], wanted, 1e-4, 1e-4)
        assert primitive_cache_statistics().entries == before
