import numpy as np
import pytest

from tightship.errors import GraphError
from tightship.graph import DType, Graph, Inline, Node, Value

ONE = Inline(np.ones(1, np.float32))


def node(operator, inputs, outputs, **changes):
    return Node(f"n_{outputs.split()[0]}", operator, tuple(inputs.split()),
                tuple(outputs.split()), **changes)  # fmt: skip


def graph(*nodes, inputs="x", outputs="y", **changes):
    return Graph("g", tuple(inputs.split()), tuple(outputs.split()), {}, nodes, **changes)


def body(captures, reads="i", writes="o"):
    return Graph("body", ("i",), (writes,), {}, (node("F", reads, writes),), captures=captures)


def test_a_chain_in_order_is_a_graph():
    made = graph(node("A", "x", "a"), node("B", "a w", "y"), constants={"w": ONE})
    assert [n.operator for n in made.nodes] == ["A", "B"]


def test_a_cycle_is_refused_with_the_node_and_the_value():
    with pytest.raises(GraphError, match=r"`n_a` \(A\) reads `b`.*cyclic"):
        graph(node("A", "x b", "a"), node("B", "a", "b"), outputs="b")


def test_nodes_out_of_order_are_refused():
    with pytest.raises(GraphError, match=r"`n_y` \(B\) reads `a`"):
        graph(node("B", "a", "y"), node("A", "x", "a"))


def test_a_node_that_reads_itself_is_refused():
    with pytest.raises(GraphError, match=r"`n_y` \(A\) reads `y`"):
        graph(node("A", "y", "y"))


@pytest.mark.parametrize(
    ("first", "changes"),
    [("y", {}), ("x", {}), ("w", {"constants": {"w": ONE}}), ("c", {"captures": ("c",)})],
)
def test_a_second_definition_is_refused(first, changes):
    with pytest.raises(GraphError, match=rf"`n_{first}` \(B\) defines `{first}` a second time"):
        graph(node("A", "x", "y"), node("B", "x", first), **changes)


def test_one_node_may_not_define_a_name_twice():
    with pytest.raises(GraphError, match="defines `y` a second time"):
        graph(node("A", "x", "y y"))


def test_an_output_that_nothing_defines_is_named():
    with pytest.raises(GraphError, match="Output `z` of graph `g`"):
        graph(node("A", "x", "y"), outputs="y z")


@pytest.mark.parametrize("output", ["x", "w", "c"])
def test_an_output_may_be_an_input_a_constant_or_a_capture(output):
    made = graph(outputs=output, constants={"w": ONE}, captures=("c",))
    assert made.outputs == (output,)


def test_absent_operands_are_neither_read_nor_written():
    clip = Node("clip", "Clip", ("x", "", "high"), ("y", "", "z"))
    assert clip.reads == ("x", "high")
    assert clip.writes == ("y", "z")


def test_a_name_read_twice_is_read_once():
    assert node("Mul", "x x w x", "y").reads == ("x", "w")


def test_captures_of_every_body_are_read():
    attributes = {"then_branch": body(("a", "x")), "k": 1, "else_branch": body(("b", "a"))}
    choice = node("If", "x", "y", attributes=attributes)
    assert choice.reads == ("x", "a", "b")
    assert [g.name for g in choice.subgraphs] == ["body", "body"]
    with pytest.raises(GraphError, match="reads `a`"):
        graph(choice)


def test_a_body_reads_only_what_it_captures():
    body(("c",), reads="i c")
    with pytest.raises(GraphError, match="reads `c`"):
        body((), reads="i c")


def test_a_fused_node_reads_what_its_parts_read_and_writes_what_the_last_writes():
    add, relu = node("Add", "residual c", "s"), node("Clip", "s high", "y")
    conv = node("Conv", "x w", "c", fused=(add, relu))
    assert conv.reads == ("x", "w", "residual", "high")
    assert conv.writes == ("y",)
    constants = {"w": ONE, "high": ONE}
    made = graph(conv, inputs="x residual", constants=constants)
    assert "c" not in made.uses()
    with pytest.raises(GraphError, match=r"`n_z` \(A\) reads `c`"):
        graph(conv, node("A", "c", "z"), inputs="x residual", constants=constants)


def test_uses_count_nodes_and_outputs():
    made = graph(node("A", "x x", "a"), node("B", "a x", "b"), node("C", "a", "c"),
                 outputs="a c c")  # fmt: skip
    assert made.uses() == {"x": 2, "a": 3, "c": 2}


def test_a_constant_is_given_or_known_and_the_given_one_comes_first():
    other = Inline(np.zeros(1, np.float32))
    made = graph(outputs="x", constants={"w": ONE}, known={"w": other, "k": other})
    assert (made.constant("w"), made.constant("k"), made.constant("x")) == (ONE, other, None)


def test_a_value_without_a_type_is_unknown():
    assert graph(outputs="x").value("x") == Value("x")


@pytest.mark.parametrize(
    ("dtype", "shape", "static"),
    [
        (DType.FLOAT32, (2, 3), True),
        (DType.FLOAT32, (), True),
        (DType.FLOAT32, (2, "n"), False),
        (DType.FLOAT32, (2, None), False),
        (DType.FLOAT32, None, False),
        (DType.STRING, (2,), False),
        (None, (2,), False),
    ],
)
def test_a_value_is_static_where_its_bytes_are_known(dtype, shape, static):
    value = Value("v", dtype, shape)
    assert value.is_static == static
    if static:
        assert value.static_shape == shape
        assert value.size_bytes == 4 * int(np.prod(shape))
    else:
        with pytest.raises(AssertionError):
            assert value.static_shape


def test_readers_are_found_by_name_in_order():
    nodes = (Node("n0", "Neg", ("x",), ("a",)), Node("n1", "Add", ("a", "a"), ("b",)),
             Node("n2", "Add", ("x", "a"), ("y",)))  # fmt: skip
    graph = Graph("g", ("x",), ("y",), {}, nodes)
    assert graph.reads == {"x": (0, 2), "a": (1, 2)}
    assert graph.retyped(nodes, {}, {}, {}).reads == graph.reads


def test_what_a_node_absorbs_is_its_own_then():
    fused = (Node("n1", "Add", ("a", "w"), ("b",)), Node("n2", "Relu", ("b",), ("y",)))
    node = Node("n0", "MatMul", ("x", "m"), ("a",), {"k": 1}, fused=fused).absorbed()
    assert (node.name, node.operator, node.inputs) == ("n0", "MatMul", ("x", "m"))
    assert (node.outputs, node.fused, node.writes) == (("b",), fused[1:], ("y",))
    assert (node.reads, node.attributes) == (("x", "m", "w"), {"k": 1})
