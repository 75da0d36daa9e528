"""Masks whose texts an export joins to one axis, to gather them by text and row.

All elements of a mask are ones for the rows in use. So are those of the joined axis, and whatever
is gathered from it, so that the axis itself is never written.
"""

import numpy as np

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.follow import OddLengthError
from tightship.engine.state.writer import Beyond, Extent
from tightship.graph import Fill, Node, Value

MOVING = frozenset({"Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Squeeze",
                    "Unsqueeze"})  # fmt: skip
"""Operators that make a value of elements of their first operand alone."""


def joined(r: Rewriter, node: Node) -> bool:
    """Write ones for what a node gathers from a joined mask; return whether it is one.

    Raises:
        GraphError: A node reads a joined mask in another way.
    """
    source = node.inputs[0] if node.inputs else ""
    if node.operator in MOVING and (
        source in r.joined or source in r.masks or source in r.gathered
    ):
        target = node.outputs[0]
        try:
            shape = r.shape(target)
        except OddLengthError:
            r.joined.add(target)
            return True
        if source not in r.masks:
            _write_ones(r, target, shape)
            return True
    if not r.joined.isdisjoint(node.reads):
        raise r.refusal(node, "a mask whose texts are joined")
    return False


def _write_ones(r: Rewriter, target: str, shape: tuple[int, ...]) -> None:
    dtype = r.followed.graph.value(target).dtype
    assert dtype is not None
    r.gathered.add(target)
    r.writer.constants[target] = Fill(np.ones((), dtype.numpy), shape)
    r.writer.values[target] = Value(target, dtype, shape)
    added = r.added(target)
    r.define(target, {axis: Extent(rows, Beyond.FINITE) for axis, rows in added.items()})
