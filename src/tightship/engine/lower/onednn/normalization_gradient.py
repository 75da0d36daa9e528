"""Emits gradients of normalizations and softmaxes."""

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import covered, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.gradient import DIFF_DST, DIFF_SRC, gradient_step
from tightship.engine.lower.onednn.normalization import (
    MEAN,
    SCALE,
    SHIFT,
    VARIANCE,
    rows_of,
    softmax_layout,
)
from tightship.engine.lower.onednn.parameters import parameter
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.program.program import Operand
from tightship.graph import Node

DIFF_SCALE, DIFF_SHIFT = 255, 256
UNREAD = SHIFT
"""Argument that the primitive requires, though no gradient depends on it."""


def layer_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradients of LayerNormalization, whose variance plus epsilon is `inverse ** -2`."""
    require(bool(node.outputs[0]))
    rows, columns = rows_of(builder, node)
    matrix, vector, each = (MemoryDesc(dims) for dims in ([rows, columns], [columns], [rows]))
    square = covered(
        fast(lambda: PrimitiveDesc.eltwise("pow", each, each, (1.0, -2.0), Attributes()))
    )
    desc = covered(
        fast(lambda: PrimitiveDesc.layer_normalization_gradient(matrix, matrix, 0.0, Attributes()))
    )
    dy, x, scale, mean, inverse = node.inputs
    variance = builder.room(f"{node.name}.variance", each)
    builder.primitive(node, square, [(SRC, parameter(builder, inverse, each, each))], [variance])
    gradient = builder.in_layout(dy, matrix)
    factor = parameter(builder, scale, vector, vector)
    reads = [
        (DIFF_DST, gradient),
        (SRC, builder.in_layout(x, matrix)),
        (SCALE, factor),
        (UNREAD, factor),
        (MEAN, parameter(builder, mean, each, each)),
        (VARIANCE, variance),
    ]
    target = builder.output_as(node.outputs[0], matrix)
    writes = [(DIFF_SRC, target), *_vectors(builder, node, (DIFF_SCALE, DIFF_SHIFT), vector)]
    gradient_step(builder, node, desc, reads, writes, [(target, gradient)])


def softmax_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradient of Softmax or LogSoftmax, which may overwrite the result's gradient."""
    layout, axis = softmax_layout(builder, node)
    is_log = node.operator == "LogSoftmaxGrad"
    desc = covered(
        fast(lambda: PrimitiveDesc.softmax_gradient(layout, layout, axis, is_log, Attributes()))
    )
    gradient, result = (builder.in_layout(name, layout) for name in node.inputs)
    target = builder.output_as(node.outputs[0], layout)
    reads = [(DIFF_DST, gradient), (DST, result)]
    gradient_step(builder, node, desc, reads, [(DIFF_SRC, target)], [(target, gradient)])


def _vectors(
    builder: Builder, node: Node, arguments: tuple[int, int], vector: MemoryDesc
) -> list[tuple[int, Operand]]:
    """Return operands for the second and third output, temporary ones if they are left out."""
    names = [*node.outputs[1:], "", ""][:2]
    return [
        (
            argument,
            builder.output_as(name, vector)
            if name
            else builder.room(f"{node.name}.{argument}", vector),
        )
        for argument, name in zip(arguments, names, strict=True)
    ]
