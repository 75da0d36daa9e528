"""Weights in half precision for kernels that take them so."""

from tightship.engine.lower.passes.widened import Widened
from tightship.engine.lower.steps.builder import Builder
from tightship.graph import DType, Node


def half_weights(builder: Builder, node: Node) -> tuple[str, DType] | None:
    """The second operand of a product as it is stored, if that is in half precision.

    A kernel that takes both operands so computes what the model says, from half the bytes: its
    values are rounded between operators.
    """
    constant = builder.constant(node.inputs[1])
    if not isinstance(constant, Widened) or constant.narrow is None:
        return None
    name = f"{node.inputs[1]}.narrow"
    builder.add_constant(name, constant.narrow)
    return name, constant.narrow.dtype
