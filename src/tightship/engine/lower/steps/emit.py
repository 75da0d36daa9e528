"""Calls emitters: functions that add the steps of a node on one tier of kernels."""

from collections.abc import Callable

from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Node
from tightship.graph.operators import body

Emitter = Callable[[Builder, Node], None]
"""Adds steps; raises NotCoveredError, having added nothing, if its kernels do not cover the node.
"""


def emit(tier: str, builder: Builder, node: Node) -> bool:
    """Add the steps of a node on a tier, a column of the table; return False if not covered.

    The operands must be of known shape and planned.
    """
    emitter: Emitter | None = body(tier, node.operator, node.domain)
    if emitter is None:
        return False
    try:
        emitter(builder, node)
    except NotCoveredError:
        return False
    return True
