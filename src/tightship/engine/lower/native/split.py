"""Emits products of many rows by a constant matrix on the processor's bfloat16 matrix unit.

1x1 convolutions are such products too. The unit multiplies sixteen times as fast as vectors of
float32. A float32 is split into three bfloat16 and a product into six of theirs; the sum is as
close as that of float32 products.
"""

from dataclasses import dataclass

from tightship import _core
from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.native.streamed import (
    INFINITY,
    PROBLEMS,
    addend_and_activation,
    is_covered,
    stands_alone,
    with_bias,
)
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import AMX, channels_last, row_major
from tightship.graph import Node

PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})
"""Operators covered; of convolutions, those with a single tap."""
ROWS_MIN = 64
"""Rows from which splitting the weights pays off."""
DEPTH_MIN = 64
COLUMNS_MIN = 64
PADDING_MAX = 1.25
"""Largest ratio of the packed matrix's size to that of its elements."""
ACTIVATIONS = {
    ("relu", 0.0, 0.0): ("clip", 0.0, INFINITY),
    ("gelu_erf", 0.0, 0.0): ("gelu_erf", 0.0, 0.0),
    ("gelu_tanh", 0.0, 0.0): ("gelu_tanh", 0.0, 0.0),
    ("swish", 1.0, 0.0): ("swish", 0.0, 0.0),
    None: ("clip", -INFINITY, INFINITY),
}
"""Activation of the kernel by oneDNN's algorithm, alpha and beta."""


@dataclass(frozen=True, slots=True)
class Product:
    """Product of rows and a matrix: the matrix's layout as stored, and as the kernel reads it."""

    counts: tuple[int, int, int]
    """Rows, depth, columns."""
    stored: MemoryDesc
    packed: MemoryDesc


def split(builder: Builder, node: Node) -> bool:
    """Emit a product by a constant matrix as products of bfloat16 parts."""
    if not builder.options.split_products or node.operator not in PRODUCTS or node.domain:
        return False
    if not is_covered(builder, node) or not multiplies_tiles():
        return False
    product = _product(builder, node)
    if product is None:
        return False
    head, bias = with_bias(builder, node, product.counts[2])
    ending = addend_and_activation(builder, head)
    if ending is None:
        return False
    addend, found = ending
    activation = found if found and found[0] == "clip" else ACTIVATIONS.get(found)
    if activation is None:
        return False
    _emit(builder, head, product, (bias, addend), activation)
    return True


def multiplies_tiles() -> bool:
    """Whether the processor has the matrix unit, and oneDNN's instruction set includes it."""
    return _core.onednn_cpu_isa() & AMX == AMX and _core.multiplies_tiles()


def _product(builder: Builder, node: Node) -> Product | None:
    """Return the product, if it is large enough and its matrix can be in panels.

    A convolution takes its matrix as another program has packed it: in panels with fewer rows too,
    and not at all where the library's convolution has it in a layout of its own.
    """
    problem = PROBLEMS[node.operator](builder, node)
    if problem is None or not problem.is_product:
        return None
    _, depth, columns = problem.counts
    by_column, by_row, _ = problem.steps
    if depth < DEPTH_MIN or columns < COLUMNS_MIN:
        return None
    stored = MemoryDesc([depth, columns], "float32", [by_row, by_column])
    packed = MemoryDesc.named([depth, columns], "float32", "BA16a64b")
    before = builder.options.packed_layouts(node.inputs[1])
    is_packed = node.operator == "Conv" and packed in before
    if problem.rows < ROWS_MIN and not is_packed:
        return None
    if packed.size_bytes > PADDING_MAX * stored.size_bytes or (before and packed not in before):
        return None
    return Product((problem.rows, depth, columns), stored, packed)


def _emit(
    builder: Builder,
    node: Node,
    product: Product,
    added: tuple[str, str],
    activation: tuple[str, float, float],
) -> None:
    """Add the step; `added` has a bias and a value of the result's shape, or empty names."""
    bias, addend = added
    layout = channels_last if node.operator == "Conv" else row_major
    shape = builder.value(node.writes[0]).static_shape
    source = builder.value(node.inputs[0]).static_shape
    reads = [
        builder.in_layout(node.inputs[0], layout(source)),
        builder.weight(node.inputs[1], product.stored, product.packed),
    ]
    if bias:
        row = builder.row_major((1, product.counts[2]))
        reads.append(builder.weight(bias, row, row))
    if addend:
        reads.append(builder.in_layout(addend, layout(shape)))
    target = builder.output(node.writes[0], layout(shape))
    kernel = NativeKernel.split_product(list(product.counts), bool(bias), bool(addend), *activation)
    builder.native(
        node,
        ("split", kernel),
        reads,
        [target],
        in_place=[(target, reads[-1])] if addend and stands_alone(reads) else [],
    )
