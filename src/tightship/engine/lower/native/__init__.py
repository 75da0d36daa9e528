"""Emitters of native kernels for nodes that oneDNN has no fast primitive for.

An emitter returns False, or raises NotCoveredError, having added nothing, if its kernels do not
cover the node.
"""

from collections.abc import Callable

from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Node
from tightship.graph.operators import body

Emitter = Callable[[Builder, Node], bool]


def emit_native(builder: Builder, node: Node) -> bool:
    """Add the steps of a node whose values are planned; return False if no kernel covers it."""
    emitter: Emitter | None = body("native", node.operator, node.domain)
    try:
        return emitter is not None and emitter(builder, node)
    except NotCoveredError:
        return False
