"""Emits elementwise operators, which keep the layout of their operand."""

from dataclasses import replace

from tightship._core import Attributes, MemoryDesc, NativeKernel, PrimitiveDesc
from tightship.engine.kernels.kernel_context import covered, require
from tightship.engine.lower.onednn.choose import fast, first_fast
from tightship.engine.lower.steps.builder import SRC, Builder
from tightship.engine.lower.steps.fused_nodes import eltwise_of
from tightship.engine.lower.steps.layouts import row_major
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node, element_count
from tightship.graph.layout import size_bytes
from tightship.graph.operators import row_of
from tightship.planner.schedule import AliasKind

SRC_1 = 2
MULTIPLE_SRC = 1024
NATIVE = frozenset({"Relu", "Clip", "Min", "Max"})
"""Operators for native kernels, which are as fast and keep NaN, which the library may lose."""
COMMUTING = frozenset({"Add", "Mul", "Sum", "Min", "Max"})
SHORT_ROW = 32
"""Longest rows for which a native kernel takes less time: for 5, 0.3 of it, or 0.7 with a row."""
OF_EQUAL_BITS = frozenset({"Add", "Mul"})
"""Operators whose operands may be swapped bit for bit; Min and Max depend on order for NaN."""


def activation(builder: Builder, node: Node) -> None:
    """Emit one eltwise primitive, in place if the operand is not read later."""
    algorithm, alpha, beta = covered(eltwise_of(builder, node))
    require(not _is_native(builder, node))
    layout, desc = first_fast(
        builder.candidate_layouts(builder.home(node.inputs[0])),
        lambda layout: PrimitiveDesc.eltwise(
            algorithm, layout, layout, (alpha, beta), Attributes()
        ),
    )
    source = builder.in_layout(node.inputs[0], layout)
    target = builder.output(node.outputs[0], layout)
    builder.primitive(node, desc, [(SRC, source)], [target], [(source, AliasKind.IN_PLACE)])


def binary(builder: Builder, node: Node) -> None:
    """Emit a binary operation whose first operand has the shape of the result, and its layout.

    Later readers of an operand decide what may be overwritten, but no layout, so that another order
    of nodes yields the same layouts. Before opset 7 an attribute places the second operand's axes;
    that form is left to NumPy.
    """
    require(not node.fused and len(node.inputs) == 2)
    require("axis" not in node.attributes and not _is_native(builder, node))
    shape = builder.value(node.outputs[0]).static_shape
    left, right = _ordered(builder, node, shape)
    require(builder.value(left).static_shape == shape)
    other_shape = builder.value(right).static_shape
    padded = [1] * (len(shape) - len(other_shape)) + list(other_shape)
    require(not _has_short_rows(builder, left, padded))
    layouts = [
        (layout, layout if other_shape == shape else MemoryDesc(padded or [1]))
        for layout in builder.candidate_layouts(builder.home(left))
    ]
    (layout, other_layout), desc = first_fast(
        layouts,
        lambda pair: PrimitiveDesc.binary(row_of(node).binary, *pair, pair[0], Attributes()),
    )
    first = builder.in_layout(left, layout)
    second = builder.in_layout(right, other_layout)
    if _is_better_first(builder, node, right, left):
        first, second = second, first
    target = builder.output(node.outputs[0], layout)
    share = [(first, AliasKind.IN_PLACE)] if second.slot != first.slot else []
    builder.primitive(node, desc, [(SRC, first), (SRC_1, second)], [target], share)


def _has_short_rows(builder: Builder, name: str, other: list[int]) -> bool:
    """Whether row-major rows are short, and all have one number or row as their other operand.

    The library works on one row at a time, for which it takes as long as for 50 elements.
    """
    home, shape = builder.home(name), builder.value(name).static_shape
    return (
        builder.options.use_native
        and len(shape) > 1
        and shape[-1] <= SHORT_ROW < element_count(shape)
        and element_count(other[:-1]) == 1
        and home.desc in (None, row_major(shape))
    )


def unless_streamed(builder: Builder, node: Node) -> None:
    """Emit as `binary` does, except for results that a native kernel writes around the caches."""
    require(not _is_streamed(builder, node))
    binary(builder, node)


def _is_native(builder: Builder, node: Node) -> bool:
    """Whether a native kernel reads the operands in their layout and keeps every NaN."""
    return node.operator in NATIVE and _is_plain(builder, node)


def _is_streamed(builder: Builder, node: Node) -> bool:
    """Whether a native kernel may write the result around the caches, because it is large.

    It does not if an operand is overwritten, because its bytes are read into the caches anyway.
    """
    shape = builder.value(node.outputs[0]).static_shape
    least = NativeKernel.streamed_bytes(node.operator, "float32")
    return (
        least is not None
        and size_bytes(DType.FLOAT32, shape) >= least
        and all(builder.value(name).static_shape == shape for name in node.inputs)
        and _is_plain(builder, node)
    )


def _is_plain(builder: Builder, node: Node) -> bool:
    names = [name for name in node.inputs if name and builder.constant(name) is None]
    homes = [builder.home(name) for name in names]
    return (
        builder.options.use_native
        and not node.fused
        and all(home.desc is None or home.desc.is_plain for home in homes)
    )


def _ordered(builder: Builder, node: Node, shape: tuple[int, ...]) -> tuple[str, str]:
    """Return the operands, one of the result's shape first if the order is free."""
    left, right = node.inputs
    if node.operator in COMMUTING and builder.value(left).static_shape != shape:
        return right, left
    return left, right


def _is_better_first(builder: Builder, node: Node, name: str, other: str) -> bool:
    """Whether one operand can be overwritten and the other, which it may replace, cannot."""
    shapes = [builder.value(each).static_shape for each in (name, other)]
    return (
        node.operator in OF_EQUAL_BITS
        and shapes[0] == shapes[1]
        and _dies(builder, name)
        and not _dies(builder, other)
    )


def _dies(builder: Builder, name: str) -> bool:
    return builder.constant(name) is None and builder.dies_here(builder.home(name))


def sum_of(builder: Builder, node: Node) -> None:
    """Emit Sum: of two as Add, of more as one primitive if shapes are equal."""
    if len(node.inputs) == 2:
        binary(builder, replace(node, operator="Add"))
        return
    shape = builder.value(node.outputs[0]).static_shape
    require(all(builder.value(name).static_shape == shape for name in node.inputs))
    first = builder.home(node.inputs[0])
    assert first.desc is not None
    layout = first.desc
    scales = [1.0] * len(node.inputs)
    layouts = [layout] * len(scales)
    desc = covered(fast(lambda: PrimitiveDesc.sum(layouts, layout, scales, Attributes())))
    reads: list[tuple[int, Operand]] = [
        (MULTIPLE_SRC + index, builder.in_layout(name, layout))
        for index, name in enumerate(node.inputs)
    ]
    builder.primitive(node, desc, reads, [builder.output(node.outputs[0], layout)])
