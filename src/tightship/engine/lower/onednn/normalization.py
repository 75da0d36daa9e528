"""Emits batch, layer and local response normalization, and softmax."""

import numpy as np

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.onednn.choose import fast, first_fast
from tightship.engine.lower.onednn.parameters import parameter
from tightship.engine.lower.passes.fold_batch_norm import epsilon_of, is_inference_norm
from tightship.engine.lower.steps.builder import SRC, Builder
from tightship.engine.lower.steps.layouts import register_floats
from tightship.engine.program.program import Operand
from tightship.graph import Node, element_count
from tightship.planner.schedule import AliasKind

MEAN, VARIANCE, SCALE, SHIFT = 49, 50, 51, 52


def batch_normalization(builder: Builder, node: Node) -> None:
    """Emit BatchNormalization at inference, with a fused Relu."""
    require(is_inference_norm(node))
    require([fused.operator for fused in node.fused] in ([], ["Relu"]))
    layout, desc = first_fast(
        builder.candidate_layouts(builder.home(node.inputs[0])),
        lambda layout: PrimitiveDesc.batch_normalization(
            layout, layout, epsilon_of(node), bool(node.fused), Attributes()
        ),
    )
    source = builder.in_layout(node.inputs[0], layout)
    vector = MemoryDesc([source.shape[1]])
    arguments = zip((SCALE, SHIFT, MEAN, VARIANCE), node.inputs[1:], strict=True)
    vectors = [(place, parameter(builder, name, vector, vector)) for place, name in arguments]
    target = builder.output(node.writes[0], layout)
    share = [(source, AliasKind.IN_PLACE)]
    builder.primitive(node, desc, [(SRC, source), *vectors], [target], share)


def layer_normalization(builder: Builder, node: Node) -> None:
    """Emit LayerNormalization over the last axes, as rows of one matrix."""
    count, columns = rows_of(builder, node)
    names = [name for name in node.inputs[1:] if name]
    constants = [covered(builder.constant(name)) for name in names]
    require(len(node.writes) == 1 and all(element_count(c.shape) == columns for c in constants))
    rows = builder.row_major((count, columns))
    key = "layer", count, columns, epsilon_of(node), len(names)
    desc = covered(
        builder.described(
            key,
            lambda: fast(
                lambda: PrimitiveDesc.layer_normalization(
                    rows, rows, epsilon_of(node), len(names) == 2, Attributes()
                )
            ),
        )
    )
    source = builder.in_layout(node.inputs[0], rows)
    vector = builder.row_major((columns,))
    reads: list[tuple[int, Operand]] = [(SRC, source)]
    for argument, name in zip((SCALE, SHIFT), names, strict=False):
        reads.append((argument, builder.weight(name, vector, vector)))
    target = builder.output_as(node.outputs[0], rows)
    builder.primitive(node, desc, reads, [target], [(source, AliasKind.IN_PLACE)])


def local_response(builder: Builder, node: Node) -> None:
    """Emit LRN across channels for odd windows; oneDNN centres even ones differently."""
    size = node.attributes.get("size")
    if not isinstance(size, int) or size % 2 == 0:
        raise NotCoveredError
    alpha, beta, bias = (
        float(np.float32(node.attributes.get(name, default)))  # type: ignore[arg-type]
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    layout, desc = first_fast(
        builder.candidate_layouts(builder.home(node.inputs[0])),
        lambda layout: PrimitiveDesc.local_response(
            layout, layout, size, (alpha, beta, bias), Attributes()
        ),
    )
    reads = [(SRC, builder.in_layout(node.inputs[0], layout))]
    builder.primitive(node, desc, reads, [builder.output(node.outputs[0], layout)])


def softmax(builder: Builder, node: Node) -> None:
    """Emit Softmax or LogSoftmax, but for rows that our kernel takes less time for."""
    layout, axis = softmax_layout(builder, node)
    require(axis != len(layout.dims) - 1 or not _has_faster_rows(builder, node))
    is_log = node.operator == "LogSoftmax"
    desc = covered(fast(lambda: PrimitiveDesc.softmax(layout, layout, axis, is_log, Attributes())))
    source = builder.in_layout(node.inputs[0], layout)
    target = builder.output_as(node.outputs[0], layout)
    builder.primitive(node, desc, [(SRC, source)], [target], [(source, AliasKind.IN_PLACE)])


def _has_faster_rows(builder: Builder, node: Node) -> bool:
    """Whether the core's softmax along rows is the faster one, as with AVX-512.

    It takes 0.3 of the library's time for rows of 5, 0.7 of it for rows of 64 to 1,000.
    """
    is_plain = node.operator == "Softmax" and not node.fused
    return is_plain and builder.options.use_native and register_floats() == 16


def rows_of(builder: Builder, node: Node) -> tuple[int, int]:
    """Return rows and columns of the matrix whose rows are normalized, flattened at `axis`."""
    shape = builder.value(node.inputs[0]).static_shape
    axis = node.integer("axis", -1)
    axis %= max(len(shape), 1)
    return element_count(shape[:axis]), element_count(shape[axis:])


def softmax_layout(builder: Builder, node: Node) -> tuple[MemoryDesc, int]:
    """Return the operand's layout and the axis; before opset 13, flatten axes at `axis`."""
    shape = builder.value(node.inputs[0]).static_shape
    coerced = node.version < 13
    axis = node.integer("axis", 1 if coerced else -1)
    axis %= max(len(shape), 1)
    if coerced:
        return MemoryDesc([element_count(shape[:axis]), element_count(shape[axis:])]), 1
    return MemoryDesc(list(shape) or [1]), axis
