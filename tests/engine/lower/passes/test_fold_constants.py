import numpy as np
import pytest

from tests.engine.graphs import expected, graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.passes.fold_constants import fold_constants
from tightship.graph import (
    Derived,
    DType,
    Fill,
    Graph,
    Inline,
    Mapped,
    MappedFile,
    Node,
    Value,
)


class Unread:
    """A constant that must not be looked at, until it is allowed."""

    dtype = DType.FLOAT32
    shape = (2, 3)
    is_allowed = False

    def array(self):
        assert self.is_allowed, "an element was read"
        return filled(2, 3)

    def release(self):
        """Nothing to give back."""


def chain(*nodes, constants, shapes, outputs=("y",)):
    """A graph of nodes, all of whose values are float32 of the shapes given."""
    values = {name: Value(name, DType.FLOAT32, shape) for name, shape in shapes.items()}
    return Graph("g", ("x",), outputs, values, nodes, constants)


def transposed(constant):
    return chain(
        Node("t", "Transpose", ("w",), ("t",), {"perm": (1, 0)}, version=20),
        Node("e", "Exp", ("t",), ("e",), version=20),
        Node("m", "MatMul", ("x", "e"), ("y",), version=20),
        constants={"w": constant},
        shapes={"x": (4, 3), "t": (3, 2), "e": (3, 2), "y": (4, 2)},
    )


def test_no_element_is_read_before_the_result_is_asked_for():
    weight = Unread()
    folded = fold_constants(transposed(weight))
    assert operators(folded) == ["MatMul"]
    assert set(folded.constants) == {"e"}
    assert isinstance(folded.constants["e"], Derived)
    weight.is_allowed = True
    np.testing.assert_allclose(folded.constants["e"].array(), np.exp(filled(2, 3).T), rtol=1e-6)


def test_releasing_what_was_folded_releases_what_it_came_from():
    class Counted(Inline):
        released = 0

        def release(self):
            type(self).released += 1

    fold_constants(transposed(Counted(filled(2, 3)))).constants["e"].release()
    assert Counted.released == 1


RESHAPED = [
    Node("r", "Reshape", ("w", "shape"), ("r",), version=20),
    Node("r", "Flatten", ("w",), ("r",), version=20),
    Node("r", "Unsqueeze", ("w", "shape"), ("r",), version=20),
    Node("r", "Squeeze", ("w", "shape"), ("r",), version=20),
    Node("r", "Identity", ("w",), ("r",), version=20),
]


def reshaping(node, constant, shape):
    use = Node("u", "Add", ("x", "r"), ("y",), version=20)
    constants = {"w": constant, "shape": Inline(np.array(shape))}
    return chain(node, use, constants=constants,
                 shapes={"r": shape, "x": shape, "y": shape})  # fmt: skip


@pytest.mark.parametrize("node", RESHAPED, ids=lambda node: node.operator)
@pytest.mark.parametrize("kind", ["mapped", "fill", "inline"])
def test_reshaping_changes_the_shape_only(node, kind, tmp_path):
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(8) + filled(2, 3).tobytes())
    constant = {
        "mapped": Mapped(MappedFile(path), 8, DType.FLOAT32, (2, 3)),
        "fill": Fill(np.asarray(7, np.float32), (2, 3)),
        "inline": Inline(filled(2, 3)),
    }[kind]
    found = fold_constants(reshaping(node, constant, (3, 1, 2))).constants["r"]
    assert type(found) is type(constant)
    assert (found.shape, found.dtype) == ((3, 1, 2), DType.FLOAT32)
    np.testing.assert_array_equal(found.array(), constant.array().reshape(3, 1, 2))
    if kind == "mapped":
        assert (found.file, found.offset_bytes) == (constant.file, constant.offset_bytes)
    if kind == "inline":
        assert np.shares_memory(found.array(), constant.array())


def test_reshaping_what_is_computed_is_computed_too():
    weight = Unread()
    found = fold_constants(reshaping(RESHAPED[0], weight, (6,))).constants["r"]
    weight.is_allowed = True
    np.testing.assert_array_equal(found.array(), filled(2, 3).reshape(6))


def test_a_reshaping_operator_of_another_domain_is_not_ours_to_fold():
    node = Node("r", "Reshape", ("w", "shape"), ("r",), domain="elsewhere")
    found = fold_constants(reshaping(node, Inline(filled(2, 3)), (6,))).constants["r"]
    assert isinstance(found, Derived)


RANDOM = [
    "r = RandomNormal <shape = [2, 3]> ()",
    "r = RandomUniform <shape = [2, 3]> ()",
    "r = RandomNormalLike (w)",
    "r = RandomUniformLike (w)",
    "r = Bernoulli (w)",
]


@pytest.mark.parametrize("line", RANDOM)
def test_random_numbers_are_drawn_at_every_run(line):
    graph = graph_of(f"g (float[2, 3] x) => (float[2, 3] y) {{ {line} y = Add (x, r) }}",
                     w=np.full((2, 3), 0.5, np.float32))  # fmt: skip
    assert len(fold_constants(graph).nodes) == 2


def test_a_node_that_runs_a_graph_is_not_folded():
    graph = graph_of(
        """g (float[2] x) => (float[2] y) {
            r = If (yes) < then_branch = a () => (float[2] p) { p = Neg (w) },
                           else_branch = b () => (float[2] q) { q = Abs (w) } >
            y = Add (x, r)
        }""",
        yes=np.array(True), w=filled(2),
    )  # fmt: skip
    assert operators(fold_constants(graph)) == ["If", "Add"]


def test_a_shape_that_only_the_data_determines_is_not_folded():
    count = Node("k", "NonZero", ("w",), ("k",), version=13)
    values = {"k": Value("k", DType.INT64, (1, None))}
    graph = Graph("g", (), ("k",), values, (count,), {"w": Inline(filled(3))})
    assert operators(fold_constants(graph)) == ["NonZero"]


def test_what_shapes_determine_is_folded_though_inputs_have_no_value():
    graph = graph_of(
        """g (float[4, 6] x) => (float[6, 4] y) {
            s = Shape (x)
            h = Gather (s, order)
            y = Reshape (x, h)
        }""",
        order=np.array([1, 0]),
    )
    folded = fold_constants(graph)
    assert operators(folded) == ["Reshape"]
    assert folded.constants["h"].array().tolist() == [6, 4]


def test_a_split_of_a_constant_becomes_a_constant_for_each_part_that_is_read():
    graph = graph_of(
        """g (float[2, 2] x) => (float[2, 2] y) {
            a, b, c = Split <axis = 1, num_outputs = 3> (w)
            s = Add (x, c)
            y = Sub (s, a)
        }""",
        w=filled(2, 6),
    )
    folded = fold_constants(graph)
    assert operators(folded) == ["Add", "Sub"]
    assert set(folded.constants) == {"a", "c"}
    np.testing.assert_array_equal(folded.constants["c"].array(), filled(2, 6)[:, 4:])


def test_a_folded_output_is_still_an_output():
    graph = graph_of("g (float[2] x) => (float[2] y, float[2] z) { y = Neg (w) z = Exp (x) }",
                     w=filled(2))  # fmt: skip
    folded = fold_constants(graph)
    assert operators(folded) == ["Exp"]
    np.testing.assert_array_equal(run(folded)["y"], -filled(2))


def test_results_are_those_of_the_graph_not_folded():
    graph = graph_of(
        """g (float[4, 6] x) => (float[4, 6] y) {
            t = Transpose (w)
            e = Exp (t)
            n = ReduceMean <keepdims = 1> (e)
            d = Div (e, n)
            a = Add (x, d)
            y = Mul (a, n)
        }""",
        w=filled(6, 4),
    )
    assert operators(fold_constants(graph)) == ["Add", "Mul"]
    found = run(fold_constants(graph), ("onednn", "native", "fold_constants"))
    np.testing.assert_array_equal(found["y"], expected(graph)["y"])
