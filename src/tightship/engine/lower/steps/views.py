"""Views: values that are another's bytes, in the same order, under another shape."""

from tightship import _core
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import row_major
from tightship.engine.program.program import Space
from tightship.graph import Node
from tightship.graph.operators import Category, row_of


def is_view(node: Node) -> bool:
    """Whether the output is the first input's bytes; a Dropout's, unless it trains."""
    return row_of(node).category is Category.RESHAPING or node.operator == "Dropout"


def same_bytes(builder: Builder, node: Node) -> bool:
    """Make the output a view of the first input; return False if that is an object.

    If the input's layout cannot describe the new shape, a row-major copy is made first.
    """
    shape = builder.value(node.outputs[0]).static_shape
    home = builder.home(node.inputs[0])
    if home.space is Space.OBJECT:
        return False
    if home.desc is None:
        builder.view(node.outputs[0], home, None)
        return True
    dims = list(shape) or [1]
    try:
        desc = home.desc.reshaped(dims)
    except _core.OneDnnError:
        home, desc = builder.dense(node.inputs[0]), row_major(dims, home.dtype)
    builder.view(node.outputs[0], home, desc)
    return True
