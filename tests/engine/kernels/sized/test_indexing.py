"""Operators that choose elements by index or condition, on arrays of any shape."""

import numpy as np
import pytest

from tests.engine.kernels.sized.checks import (
    EMPTY,
    FLOATS,
    INDEX,
    assert_agrees_with_reference,
    assert_agrees_with_suite,
    ints,
    of_module,
)
from tightship.engine.kernels import object_kernel
from tightship.engine.kernels.reference import reference_kernel
from tightship.graph import Node

OTHER = {
    "nothing is not zero": ("NonZero", 13, {}, [np.zeros((3, 2), np.int32)]),
    "no element": ("NonZero", 13, {}, [EMPTY]),
    "an empty gather": ("Gather", 13, {"axis": 1}, [FLOATS, np.zeros((0, 2), np.int64)]),
    "tuples in batches": ("GatherND", 13, {"batch_dims": 1}, [FLOATS, INDEX[:, :1]]),
    "no tuples": ("GatherND", 13, {}, [FLOATS, np.zeros((0, 1), np.int64)]),
    "negative places": ("GatherElements", 13, {"axis": 1}, [FLOATS, INDEX]),
    "added twice": ("ScatterND", 18, {"reduction": "add"},
                    [np.ones((3, 2), int), ints(0, 0).reshape(2, 1), np.ones((2, 2), int)]),
    "a condition shorter than the axis": ("Compress", 11, {"axis": 1},
                                          [FLOATS, np.array([False, True])]),
    "elements by their first places": ("Unique", 11, {"sorted": 0}, [ints(4, 1, 4, 3, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("operator", of_module("indexing"))
def test_kernels_agree_with_the_node_suite(operator: str) -> None:
    assert_agrees_with_suite(operator)


@pytest.mark.parametrize("what", sorted(OTHER))
def test_kernels_agree_with_the_reference(what: str) -> None:
    assert_agrees_with_reference(what, OTHER[what])


@pytest.mark.parametrize("is_largest", [0, 1])
def test_equal_elements_are_ranked_by_index_and_a_nan_is_the_largest(is_largest: int) -> None:
    node = Node("n", "TopK", ("x", "k"), ("v", "i"), {"largest": is_largest}, version=11)
    values, places = object_kernel(node).run([FLOATS, ints(3)])
    wanted = [[0, 3, 2], [0, 1, 3]] if is_largest else [[1, 2, 3], [2, 1, 3]]
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(FLOATS, np.array(wanted), 1))


def test_strings_and_narrow_floats_go_to_the_reference() -> None:
    node = Node("n", "Gather", ("x", "i"), ("y",), {}, version=13)
    words = np.array(["a", "b"], object)
    assert object_kernel(node).run([words, ints(1)])[0].tolist() == ["b"]


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("axis", [0, 1])
def test_whole_rows_are_moved_as_their_elements_would_be(axis: int, reduction: str) -> None:
    random = np.random.default_rng(3)
    data = random.random((5, 4, 3)).astype(np.float32)
    places = np.array([3, 0, -1])[:, None] if axis else np.array([3, 0, -1])[:, None, None]
    shape = (5, 3, 3) if axis else (3, 4, 3)
    for index in (np.broadcast_to(places, shape), np.broadcast_to(places, shape).copy()):
        updates = random.random(index.shape).astype(np.float32)
        node = Node("n", "ScatterElements", ("x", "i", "u"), ("y",),
                    {"axis": axis, "reduction": reduction}, version=18)  # fmt: skip
        (found,) = object_kernel(node).run([data, index, updates])
        (wanted,) = reference_kernel(node)([data, index, updates])
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        gather = Node("n", "GatherElements", ("x", "i"), ("y",), {"axis": axis}, version=13)
        (found,) = object_kernel(gather).run([data, index])
        np.testing.assert_array_equal(found, reference_kernel(gather)([data, index])[0])
