"""Templates of one model hold what they have in common once, and nothing that differs."""

from dataclasses import replace

import numpy as np

from tests.zoo.exports import export
from tightship.engine.lower.selection import rewritten
from tightship.engine.template.equal_parts import equal_constants, equal_nodes
from tightship.engine.template.template import template_of
from tightship.frontend.onnx import open_bytes
from tightship.graph import Constant, Fill, Inline, Node
from tightship.graph.length import Trace


def numbers(*values: int) -> Inline:
    return Inline(np.array(values, np.int64))


def node(**attributes: object) -> Node:
    return Node("n", "Op", ("a",), ("b",), attributes)  # type: ignore[arg-type]


def test_most_nodes_of_a_second_template_are_those_of_the_first() -> None:
    file = open_bytes(export("llama"))
    first, second = (
        template_of(file.graph(dict.fromkeys(("ids", "mask"), shape)), file.declared, rewritten)
        for shape in ((2, 24), (1, 24))
    )
    assert first is not None
    assert second is not None
    shapes = dict.fromkeys(("ids", "mask"), (1, 30))
    before = second.graph(shapes)
    second.share([first])
    after = second.graph(shapes)
    assert before is not None
    assert after is not None
    assert [(n.name, n.operator, n.inputs, n.outputs) for n in after.nodes] == [
        (n.name, n.operator, n.inputs, n.outputs) for n in before.nodes
    ]
    held = first.graph(dict.fromkeys(("ids", "mask"), (2, 30)))
    assert held is not None
    shared = {id(each) for each in held.nodes} & {id(each) for each in after.nodes}
    assert len(shared) > len(after.nodes) / 2
    assert len({id(each) for each in held.nodes} & {id(each) for each in before.nodes}) == 0


def test_a_node_that_differs_is_kept() -> None:
    held = node(axis=1, shape=(1, 2), value=numbers(1, 2))
    same = node(axis=1, shape=(1, 2), value=numbers(1, 2))
    assert equal_nodes([same], [held]) == (held,)
    assert equal_nodes([same], [held])[0] is held
    for other in (
        node(axis=2, shape=(1, 2), value=numbers(1, 2)),
        node(axis=1, shape=(1, 3), value=numbers(1, 2)),
        node(axis=1, shape=(1, 2), value=numbers(1, 3)),
        node(axis=True, shape=(1, 2), value=numbers(1, 2)),
        node(axis=1, shape=(1, 2)),
        replace(same, inputs=("c",)),
        replace(same, version=2),
        replace(same, fused=(replace(same, name="m"),)),
    ):
        assert equal_nodes([other], [held])[0] is other


def test_a_node_with_a_length_belongs_to_its_template() -> None:
    length = Trace().symbol("n", 3)
    open_node, fixed = node(shape=(1, length)), node(shape=(1, 3))
    assert equal_nodes([open_node], [fixed])[0] is open_node
    assert equal_nodes([fixed], [open_node])[0] is fixed
    assert equal_nodes([replace(open_node)], [open_node])[0] is not open_node


def test_constants_of_equal_elements_are_one() -> None:
    length = Trace().symbol("n", 3)
    zero = np.zeros((), np.float32)
    held: dict[str, Constant] = {"a": numbers(1), "b": numbers(2), "c": Fill(zero, (length,))}
    given = {"a": numbers(1), "b": numbers(3), "c": Fill(zero, (length,)), "d": numbers(4)}
    found = equal_constants(given, held)
    assert found["a"] is held["a"]
    assert all(found[name] is given[name] for name in "bcd")
