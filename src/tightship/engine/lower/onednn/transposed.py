"""Emits products of computed matrices, either of which may be read transposed."""

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import require
from tightship.engine.lower.onednn import halves
from tightship.engine.lower.onednn.choose import first_fast
from tightship.engine.lower.onednn.parameters import parameter
from tightship.engine.lower.steps.builder import SRC, Builder
from tightship.engine.lower.steps.layouts import dense_strides, row_major
from tightship.graph import Node, element_count

WEIGHTS = 33
RANK_MAX = 5


def transposed_product(builder: Builder, node: Node) -> None:
    """Emit a product of matrices or of stacks, times `alpha`; leading axes broadcast.

    The rows of a stack become one matrix if all are multiplied by the same one.
    """
    left, right = (list(builder.value(name).static_shape) for name in node.inputs[:2])
    is_left, is_right = (bool(node.attributes.get(name, 0)) for name in ("transA", "transB"))
    target = list(builder.value(node.outputs[0]).static_shape)
    if len(right) == 2 and not is_left:
        left, target = ([element_count(shape[:-1]), shape[-1]] for shape in (left, target))
    rank = max(len(left), len(right))
    require(rank <= RANK_MAX)
    first, second = (
        _matrices(shape, rank, is_transposed=swaps)
        for shape, swaps in ((left, is_left), (right, is_right))
    )
    result = row_major(target)
    alpha = node.number("alpha", 1.0)
    rounds = halves.pays(builder, *first.dims[-2:], second.dims[-1])
    if rounds and rank == 2 and alpha == 1.0 and halves.has_parts(builder, node.inputs[1]):
        halves.by_weight(builder, node, second, result)
        return
    attributes = Attributes()
    if alpha != 1.0:
        attributes.add_eltwise("linear", alpha, 0.0)
    pairs = [(first, second)]
    if rounds:
        pairs.insert(0, (halves.rounded(first), halves.rounded(second)))
    pair, desc = first_fast(
        pairs, lambda pair: PrimitiveDesc.matmul([*pair, None, result], attributes)
    )
    reads = [
        (
            number,
            parameter(builder, name, own, own)
            if pair is pairs[-1]
            else halves.operand(builder, name, own),
        )
        for number, name, own in zip((SRC, WEIGHTS), node.inputs, (first, second), strict=False)
    ]
    builder.primitive(node, desc, reads, [builder.output_as(node.outputs[0], result)])


def _matrices(shape: list[int], rank: int, *, is_transposed: bool) -> MemoryDesc:
    """Describe dense matrices under `rank` axes, with the last two swapped if transposed."""
    dims = [1] * (rank - len(shape)) + shape
    strides = dense_strides(dims)
    if is_transposed:
        dims[-2:], strides[-2:] = dims[:-3:-1], strides[:-3:-1]
    return MemoryDesc(dims, "float32", strides)
