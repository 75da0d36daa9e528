"""A step in two parts, held to the same graph run at once."""

import numpy as np
import pytest

import tightship
from tests.graph.backward.differences import graph_of, numbers
from tests.training.nets import NETS
from tests.zoo.arena import NOT_A_NUMBER
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import backward, parameters, with_batch_statistics
from tightship.loading import load_graph
from tightship.training.planned import Terms
from tightship.training.split_step import Parts, SplitStep

LATE = "d(y)"


def stepped_graph(name):
    graph = with_batch_statistics(read_bytes(NETS[name]().model))
    return backward(graph, ["y"], parameters(graph))


def wide_graph():
    """Build a graph whose gradients are larger than the distance of release points."""
    text = "".join(
        f"h{i + 1} = MatMul (h{i}, w{i})\ng{i + 1} = Relu (h{i + 1})\n" for i in range(4)
    )
    text = text.replace("MatMul (h", "MatMul (g").replace("(g0", "(x")
    random = np.random.default_rng(0)
    weights = {f"w{i}": random.standard_normal((1024, 1024)).astype(np.float32) / 32
               for i in range(4)}  # fmt: skip
    graph = graph_of(
        f"net (float[2048,1024] x) => (float[2048,1024] y) {{ {text} y = Relu (g4) }}", **weights
    )
    return backward(graph, ["y"], parameters(graph))


class Split:
    """A split step, and arrays to run it on."""

    def __init__(self, graph, recompute=0.0):
        self.graph, self.feeds = graph, numbers(graph)
        self.arenas = ArenaGroup()
        early = [name for name in graph.outputs if not name.startswith("d(")]
        parts = Parts(tuple(early), (LATE,))
        self.step = SplitStep(graph, parts, Terms(recompute=recompute), self.arenas)
        self.made = self.room(early)

    def room(self, names):
        values = self.graph.values
        return {n: np.empty(values[n].static_shape, values[n].dtype.numpy) for n in names}

    def forward(self):
        self.made = self.room(self.made)
        given = {name: array for name, array in self.feeds.items() if name != LATE}
        return self.step.forward(given, self.made)

    def backward(self, begun, *, keeps=False):
        made = self.room([name for name in self.graph.outputs if name not in self.made])
        known = {**self.made, **self.feeds}
        given = {name: known[name] for name in (*self.step.saved, LATE)}
        self.step.backward(begun, given, made, keeps=keeps)
        return {**self.made, **made}


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert np.array_equal(found[name], array), name


def wanted_of(graph):
    with load_graph(graph, "at once") as model:
        return model.run(numbers(graph))


@pytest.mark.parametrize("recompute", [0.0, 1.0])
@pytest.mark.parametrize("name", NETS)
def test_both_parts_give_the_bits_of_the_whole_and_read_only_what_is_kept(name, recompute):
    graph = stepped_graph(name)
    split = Split(graph, recompute)
    begun = split.forward()
    kept = np.zeros(begun.room.size_bytes, np.bool_)
    for start, stop in split.step._kept:
        kept[start:stop] = True
    begun.room.range.array()[~kept] = NOT_A_NUMBER
    assert_same(split.backward(begun), wanted_of(graph))


def test_an_arena_is_taken_from_the_start_of_one_part_to_the_end_of_the_other():
    split = Split(stepped_graph("mlp"))
    assert split.arenas.used_bytes == 0
    begun = [split.forward(), split.forward()]
    assert split.arenas.used_bytes >= 2 * split.step.arena_bytes > 0
    for each in begun:
        split.backward(each)
    assert split.arenas.used_bytes == 0
    with pytest.raises(InputError, match="The step has ended"):
        split.backward(begun[0])


def test_steps_that_are_open_at_once_do_not_meet():
    graph = stepped_graph("cnn")
    split, wanted = Split(graph), wanted_of(graph)
    first, made = split.forward(), split.made
    split.feeds = {name: 2 * array for name, array in split.feeds.items()}
    other = split.forward()
    split.backward(other)
    split.feeds, split.made = numbers(graph), made
    assert_same(split.backward(first), wanted)


def test_a_step_that_is_kept_goes_back_again():
    graph = stepped_graph("transformer")
    split, wanted = Split(graph), wanted_of(graph)
    begun = split.forward()
    for keeps in (True, True, False):
        assert_same(split.backward(begun, keeps=keeps), wanted)
    assert split.arenas.used_bytes == 0


def test_a_forward_path_that_is_refused_has_no_arena():
    split = Split(stepped_graph("mlp"))
    split.feeds["x"] = split.feeds["x"][:1]
    with pytest.raises(InputError, match=r"Input `x` has shape \[1, 10\]"):
        split.forward()
    assert split.arenas.used_bytes == 0


def test_memory_goes_back_while_gradients_are_written_elsewhere():
    graph = wide_graph()
    split = Split(graph)
    points = split.step._points
    released = [stop - start for point in points for start, stop in point.ranges]
    assert len(points) >= 1
    assert sum(released) <= sum(4 * np.prod(graph.value(n).static_shape) for n in graph.outputs)
    wanted = wanted_of(graph)
    for _ in range(2):
        assert_same(split.backward(split.forward()), wanted)


def test_a_shape_that_depends_on_data_is_refused():
    text = "net (float[4] x) => (float[4] y, int64[1,n] z) { y = Relu (x)\nz = NonZero (x) }"
    graph = graph_of(text)
    with pytest.raises(tightship.GraphError, match="in two parts"):
        SplitStep(graph, Parts(("y", "z"), ()), Terms(), ArenaGroup())
