"""Rounds what products multiply to bfloat16, for kernels that add such products up in float32.

A value is rounded once for all products that read it in the same layout, a weight once for each.
Rounding is to nearest, with a relative error of at most 2^-9 for each operand; sums are as exact as
those of float32 kernels.
"""

from dataclasses import replace

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import covered
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.parameters import parameter
from tightship.engine.lower.steps.builder import SRC, Builder
from tightship.engine.lower.steps.layouts import dense_strides, row_major
from tightship.engine.program.program import Operand, Space
from tightship.graph import DType, Node, element_count
from tightship.planner.schedule import AliasKind

WEIGHTS = 33
HALF = DType.BFLOAT16

LEAST = 32
"""Least numbers that a product adds up, and least results that read each number, for rounding to
take less time than it saves."""

PART_BYTES = 8 << 20
"""Most bytes of a weight that are rounded at once, in columns of the product."""


def pays(builder: Builder, *lengths: int) -> bool:
    """Whether products are to round operands, and these lengths of one make that worth it."""
    return builder.options.half_products and min(lengths) >= LEAST


def layouts(builder: Builder, name: str) -> list[MemoryDesc]:
    """List layouts of bfloat16 for an image to be read in: those that it has, then a free one."""
    present = [each.desc for each in builder.records.copies.get(name, ())]
    rounded = [desc for desc in present if desc is not None and desc.dtype == HALF.value]
    return [*rounded, MemoryDesc.any(list(builder.value(name).static_shape), HALF.value)]


def is_weight(builder: Builder, name: str) -> bool:
    """Whether no step of the program writes a value, as none does a weight before its update."""
    return builder.constant(name) is None and builder.home(name).space is Space.EXTERNAL


def has_parts(builder: Builder, name: str) -> bool:
    """Whether a value is a weight that is rounded in parts."""
    count = element_count(builder.value(name).static_shape)
    return is_weight(builder, name) and count * HALF.itemsize > PART_BYTES


def rounded(desc: MemoryDesc) -> MemoryDesc:
    """Return a plain layout for bfloat16."""
    return MemoryDesc(desc.dims, HALF.value, desc.strides)


def operand(builder: Builder, name: str, desc: MemoryDesc) -> Operand:
    """Return a row-major value rounded, a weight for this reader alone, under a layout of it."""
    if is_weight(builder, name):
        return parameter(builder, name, desc, rounded(desc))
    shape = builder.value(name).static_shape
    return builder.in_layout(name, row_major(shape, HALF)).under(rounded(desc))


def by_weight(builder: Builder, node: Node, stored: MemoryDesc, result: MemoryDesc) -> None:
    """Emit a product of rows by a weight, the second operand, which is rounded in parts.

    Parts are columns of the product, or terms of its sums: whichever are more.

    Args:
        builder: Program under construction.
        node: The product, which nothing is fused into.
        stored: The weight's own layout as a matrix, either way round.
        result: Row-major layout of the product.

    Raises:
        NotCoveredError: No primitive is fast for such parts.
    """
    depth, columns = stored.dims
    rows = result.dims[0]
    weight = builder.dense(node.inputs[1]).under(stored)
    source = builder.dense(node.inputs[0]).under(row_major([rows, depth]))
    if depth > columns:
        _sum_of_parts(builder, node, (source, weight), result)
        return
    parts = _parts(columns, depth)
    descs = {
        count: _product(
            [_rounded(source, [rows, depth]), _rounded(weight, [depth, count])],
            row_major([rows, count]),
        )
        for _, count in parts
    }
    narrow = _rounded_part(builder, source, [rows, depth], [0, 0])
    target = builder.output_as(node.outputs[0], result)
    for start, count in parts:
        part = _rounded_part(builder, weight, [depth, count], [0, start])
        made = builder.room(f"{node.outputs[0]}.{start}", row_major([rows, count]))
        each = replace(node, name=f"{node.name}.{start}")
        builder.primitive(each, descs[count], [(SRC, narrow), (WEIGHTS, part)], [made])
        builder.reorder(made, target.under(result.part([rows, count], [0, start])))


def _sum_of_parts(
    builder: Builder, node: Node, operands: tuple[Operand, Operand], result: MemoryDesc
) -> None:
    """Emit products of parts of the rows by parts of the weight, each added to those before."""
    source, weight = operands
    rows, columns = result.dims
    assert weight.desc is not None
    parts = _parts(weight.desc.dims[0], columns)
    descs = {
        (start > 0, count): _product(
            [_rounded(source, [rows, count]), _rounded(weight, [count, columns])],
            result,
            adds=start > 0,
        )
        for start, count in parts
    }
    before: Operand | None = None
    for start, count in parts:
        reads = [
            (SRC, _rounded_part(builder, source, [rows, count], [0, start])),
            (WEIGHTS, _rounded_part(builder, weight, [count, columns], [start, 0])),
        ]
        is_last = (start, count) == parts[-1]
        name = node.outputs[0]
        made = builder.output_as(name, result) if is_last else builder.room(f"{name}.sum", result)
        each = replace(node, name=f"{node.name}.{start}")
        share = [] if before is None else [(before, AliasKind.TIED)]
        builder.primitive(each, descs[start > 0, count], reads, [made], share)
        before = made


def _parts(length: int, across: int) -> list[tuple[int, int]]:
    """Cut an axis of a weight into parts, each a start and a length."""
    most = max(LEAST, PART_BYTES // (across * HALF.itemsize))
    return [(start, min(most, length - start)) for start in range(0, length, most)]


def _product(
    operands: list[MemoryDesc], result: MemoryDesc, *, adds: bool = False
) -> PrimitiveDesc:
    attributes = Attributes()
    if adds:
        attributes.add_sum(1.0)
    return covered(fast(lambda: PrimitiveDesc.matmul([*operands, None, result], attributes)))


def _rounded(whole: Operand, dims: list[int]) -> MemoryDesc:
    """Return the dense layout of a rounded part of a matrix, which stays the same way round."""
    assert whole.desc is not None
    is_turned = whole.desc.strides[0] == 1 < whole.desc.strides[1]
    return MemoryDesc(dims, HALF.value, [1, dims[0]] if is_turned else dense_strides(dims))


def _rounded_part(builder: Builder, whole: Operand, dims: list[int], starts: list[int]) -> Operand:
    """Add a step that rounds a part of a matrix."""
    assert whole.desc is not None
    part = builder.room(f"{whole.name}.rounded", _rounded(whole, dims))
    builder.reorder(whole.under(whole.desc.part(dims, starts)), part)
    return part
