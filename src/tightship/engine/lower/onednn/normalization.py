"""Emits batch, layer and local response normalization, and softmax."""

import numpy as np

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.parameters import parameter
from tightship.engine.lower.passes.fold_batch_norm import epsilon_of, is_inference_norm
from tightship.engine.lower.steps.builder import SRC, Builder
from tightship.engine.program.program import Operand
from tightship.graph import Node, element_count
from tightship.planner.schedule import AliasKind

MEAN, VARIANCE, SCALE, SHIFT = 49, 50, 51, 52


def batch_normalization(builder: Builder, node: Node) -> bool:
    """Emit BatchNormalization at inference, with a fused Relu."""
    if not is_inference_norm(node):
        return False
    if node.fused and [fused.operator for fused in node.fused] != ["Relu"]:
        return False
    source = builder.home(node.inputs[0])
    for layout in builder.candidate_layouts(source):
        desc = fast(
            lambda layout=layout: PrimitiveDesc.batch_normalization(  # type: ignore[misc]
                layout, layout, epsilon_of(node), bool(node.fused), Attributes()
            )
        )
        if desc is not None:
            source = builder.in_layout(node.inputs[0], layout)
            reads: list[tuple[int, Operand]] = [(SRC, source)]
            vector = MemoryDesc([source.shape[1]])
            arguments = (SCALE, SHIFT, MEAN, VARIANCE)
            for argument, name in zip(arguments, node.inputs[1:], strict=True):
                reads.append((argument, parameter(builder, name, vector, vector)))
            target = builder.output(node.writes[0], layout)
            builder.primitive(node, desc, reads, [target], [(source, AliasKind.IN_PLACE)])
            return True
    return False


def layer_normalization(builder: Builder, node: Node) -> bool:
    """Emit LayerNormalization over the last axes, as rows of one matrix."""
    count, columns = rows_of(builder, node)
    names = [name for name in node.inputs[1:] if name]
    constants = [builder.constant(name) for name in names]
    if len(node.writes) != 1 or any(
        c is None or element_count(c.shape) != columns for c in constants
    ):
        return False
    rows = builder.row_major((count, columns))
    key = "layer", count, columns, epsilon_of(node), len(names)
    desc = builder.described(
        key,
        lambda: fast(
            lambda: PrimitiveDesc.layer_normalization(
                rows, rows, epsilon_of(node), len(names) == 2, Attributes()
            )
        ),
    )
    if desc is None:
        return False
    source = builder.in_layout(node.inputs[0], rows)
    vector = builder.row_major((columns,))
    reads: list[tuple[int, Operand]] = [(SRC, source)]
    for argument, name in zip((SCALE, SHIFT), names, strict=False):
        reads.append((argument, builder.weight(name, vector, vector)))
    target = builder.output_as(node.outputs[0], rows)
    builder.primitive(node, desc, reads, [target], [(source, AliasKind.IN_PLACE)])
    return True


def local_response(builder: Builder, node: Node) -> bool:
    """Emit LRN across channels for odd windows; oneDNN centres even ones differently."""
    size = node.attributes.get("size")
    if not isinstance(size, int) or size % 2 == 0:
        return False
    alpha, beta, bias = (
        float(np.float32(node.attributes.get(name, default)))  # type: ignore[arg-type]
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    source = builder.home(node.inputs[0])
    for layout in builder.candidate_layouts(source):
        desc = fast(
            lambda layout=layout: PrimitiveDesc.local_response(  # type: ignore[misc]
                layout, layout, size, (alpha, beta, bias), Attributes()
            )
        )
        if desc is not None:
            reads = [(SRC, builder.in_layout(node.inputs[0], layout))]
            builder.primitive(node, desc, reads, [builder.output(node.outputs[0], layout)])
            return True
    return False


def softmax(builder: Builder, node: Node) -> bool:
    """Emit Softmax or LogSoftmax."""
    layout, axis = softmax_layout(builder, node)
    desc = fast(
        lambda: PrimitiveDesc.softmax(
            layout, layout, axis, node.operator == "LogSoftmax", Attributes()
        )
    )
    if desc is None:
        return False
    source = builder.in_layout(node.inputs[0], layout)
    target = builder.output_as(node.outputs[0], layout)
    builder.primitive(node, desc, [(SRC, source)], [target], [(source, AliasKind.IN_PLACE)])
    return True


def rows_of(builder: Builder, node: Node) -> tuple[int, int]:
    """Return rows and columns of the matrix whose rows are normalized, flattened at `axis`."""
    shape = builder.value(node.inputs[0]).static_shape
    axis = node.attributes.get("axis", -1)
    assert isinstance(axis, int)
    axis %= max(len(shape), 1)
    return element_count(shape[:axis]), element_count(shape[axis:])


def softmax_layout(builder: Builder, node: Node) -> tuple[MemoryDesc, int]:
    """Return the operand's layout and the axis; before opset 13, flatten axes at `axis`."""
    shape = builder.value(node.inputs[0]).static_shape
    coerced = node.version < 13
    axis = node.attributes.get("axis", 1 if coerced else -1)
    assert isinstance(axis, int)
    axis %= max(len(shape), 1)
    if coerced:
        return MemoryDesc([element_count(shape[:axis]), element_count(shape[axis:])]), 1
    return MemoryDesc(list(shape) or [1]), axis
