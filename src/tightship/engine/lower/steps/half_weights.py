"""Weights in half precision, for kernels that read them directly."""

from tightship.engine.lower.passes.widened import Widened
from tightship.engine.lower.steps.builder import Builder
from tightship.graph import DType, Node


def half_weights(builder: Builder, node: Node) -> tuple[str, DType] | None:
    """Return the second operand of a product as stored, if that is in half precision.

    A kernel that takes both operands in half precision reads half the bytes and computes what the
    model states, whose values are rounded between operators.
    """
    constant = builder.constant(node.inputs[1])
    if not isinstance(constant, Widened) or constant.narrow is None:
        return None
    name = f"{node.inputs[1]}.narrow"
    builder.add_constant(name, constant.narrow)
    return name, constant.narrow.dtype
