import numpy as np
import pytest

from tests.engine.graphs import (
    SELECTIONS,
    expected,
    graph_of,
    implementations,
    node_named,
    operators,
    run,
)
from tests.models import filled
from tightship import _core
from tightship.engine.lower.passes.shuffle_channels import shuffle_channels


def net(split, perm="0, 2, 1, 3, 4", join=(2, 6, 3, 5), before="", dtype="float"):
    """A channel shuffle of the input, or something near it."""
    return graph_of(
        f"""g ({dtype}[2, 6, 3, 5] x) => ({dtype}[{", ".join(map(str, join))}] y) {{
            {before}
            a = Reshape ({"h" if before else "x"}, split)
            b = Transpose <perm = [{perm}]> (a)
            y = Reshape (b, join)
        }}""",
        split=np.array(split), join=np.array(join), w=filled(6, 6, 1, 1),
    )  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_a_shuffle_of_channels_becomes_one_operator(groups):
    graph = net((2, groups, 6 // groups, 3, 5))
    (node,) = shuffle_channels(graph).nodes
    assert (node.domain, node.operator) == ("tightship", "ChannelShuffle")
    assert node.attributes == {"groups": groups}
    assert (node.inputs, node.outputs) == (("x",), ("y",))


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("without", [(), ("library_layouts",)])
@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_the_operator_moves_what_the_three_moved(groups, without):
    graph = net((2, groups, 6 // groups, 3, 5), before="h = Relu (x)")
    assert operators(shuffle_channels(graph)) == ["Relu", "ChannelShuffle"]
    found = run(shuffle_channels(graph), without)
    np.testing.assert_array_equal(found["y"], expected(graph)["y"])


def test_without_the_operator_the_three_move_the_same():
    graph = net((2, 2, 3, 3, 5), before="h = Relu (x)")
    operations = [operator for operator, _, _ in implementations(graph, SELECTIONS)]
    assert operations[:2] == ["Relu", "Transpose"]
    np.testing.assert_array_equal(run(graph, SELECTIONS)["y"], expected(graph)["y"])


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_the_channels_of_a_convolution_are_shuffled_in_its_layout():
    graph = net((2, 2, 3, 3, 5), before="h = Conv (x, w)")
    found = run(shuffle_channels(graph))["y"]
    np.testing.assert_allclose(found, expected(graph)["y"], rtol=1e-4, atol=1e-5)


OTHERS = {
    "another permutation": net((2, 2, 3, 3, 5), perm="0, 2, 1, 4, 3"),
    "no permutation of channels": net((2, 2, 3, 3, 5), perm="0, 1, 2, 3, 4"),
    "batch moved": net((2, 2, 3, 3, 5), perm="1, 0, 2, 3, 4", join=(2, 6, 3, 5)),
    "another split": net((2, 6, 3, 1, 5)),
    "batch split": net((1, 2, 6, 3, 5)),
    "a join into another shape": net((2, 2, 3, 3, 5), join=(2, 6, 5, 3)),
    "flattened": net((2, 2, 3, 3, 5), join=(2, 90)),
    "integers": net((2, 2, 3, 3, 5), dtype="int64"),
    "empty": graph_of(
        """g (float[2, 6, 0, 5] x) => (float[2, 6, 0, 5] y) {
            a = Reshape <allowzero = 1> (x, split) b = Transpose <perm = [0, 2, 1, 3, 4]> (a)
            y = Reshape <allowzero = 1> (b, join)
        }""",
        split=np.array([2, 2, 3, 0, 5]), join=np.array([2, 6, 0, 5]),
    ),
    "four axes": graph_of(
        """g (float[2, 6, 3] x) => (float[2, 6, 3] y) {
            a = Reshape (x, split) b = Transpose <perm = [0, 2, 1, 3]> (a) y = Reshape (b, join)
        }""",
        split=np.array([2, 2, 3, 3]), join=np.array([2, 6, 3]),
    ),
    "read between": graph_of(
        """g (float[1, 4, 2, 2] x) => (float[1, 4, 2, 2] y, float[1, 2, 2, 2, 2] z) {
            a = Reshape (x, split) b = Transpose <perm = [0, 2, 1, 3, 4]> (a)
            y = Reshape (b, join) z = Neg (b)
        }""",
        split=np.array([1, 2, 2, 2, 2]), join=np.array([1, 4, 2, 2]),
    ),
    "an output between": graph_of(
        """g (float[1, 4, 2, 2] x) => (float[1, 4, 2, 2] y, float[1, 2, 2, 2, 2] a) {
            a = Reshape (x, split) b = Transpose <perm = [0, 2, 1, 3, 4]> (a)
            y = Reshape (b, join)
        }""",
        split=np.array([1, 2, 2, 2, 2]), join=np.array([1, 4, 2, 2]),
    ),
    "no reshape at the end": graph_of(
        """g (float[1, 4, 2, 2] x) => (float[1, 2, 2, 2, 2] y) {
            a = Reshape (x, split) b = Transpose <perm = [0, 2, 1, 3, 4]> (a)
            y = Relu (b)
        }""",
        split=np.array([1, 2, 2, 2, 2]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("graph", OTHERS.values(), ids=OTHERS)
def test_what_is_no_shuffle_of_channels_stays(graph):
    shuffled = shuffle_channels(graph)
    assert shuffled.nodes == graph.nodes
    for name, value in expected(graph).items():
        np.testing.assert_array_equal(run(graph)[name], value)


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_two_shuffles_in_a_row_are_two():
    graph = graph_of(
        """g (float[1, 6, 2, 2] x) => (float[1, 6, 2, 2] y) {
            a = Reshape (x, two) b = Transpose <perm = [0, 2, 1, 3, 4]> (a) c = Reshape (b, join)
            d = Reshape (c, three) e = Transpose <perm = [0, 2, 1, 3, 4]> (d) f = Reshape (e, join)
            y = Neg (f)
        }""",
        two=np.array([1, 2, 3, 2, 2]), three=np.array([1, 3, 2, 2, 2]),
        join=np.array([1, 6, 2, 2]),
    )  # fmt: skip
    shuffled = shuffle_channels(graph)
    assert operators(shuffled) == ["ChannelShuffle", "ChannelShuffle", "Neg"]
    assert node_named(shuffled, "Neg").inputs == ("f",)
    np.testing.assert_array_equal(run(shuffled)["y"], expected(graph)["y"])
