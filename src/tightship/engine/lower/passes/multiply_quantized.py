"""Gives quantized convolutions of single pixels, and sums with them, to one kernel of our own.

The kernel writes the sum of its result and another image at once, each rounded where the file
rounds it. The library takes a step more for the sum, which reads and writes three images.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tightship.engine.lower.passes.dequantized import (
    Dequantized,
    Quantization,
    quantization,
    signed,
)
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.engine.lower.passes.walk import Walk
from tightship.graph import Constant, Derived, DType, Graph, Node, element_count
from tightship.graph.constant import Array

COLUMNS, DEPTH = 64, 4
"""Outputs that the kernel computes together, and channels that it sums at once."""
LANES = 16
DEPTH_MAX = 65_000
"""Most channels whose sum of products fits 32 bits."""
LIMITS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}


@dataclass(frozen=True, slots=True)
class _Product:
    """Quantized convolution of single pixels, and the rounding of its result."""

    node: Node
    source: Quantization
    weights: Constant
    """Weights in int8."""
    scale: Constant
    bias: Constant | None
    target: Quantization
    limits: tuple[int, int]


def multiply_quantized(graph: Graph) -> Graph:
    """Replace Conv of one pixel, and the Add behind it, by `QuantizedRows`.

    Its inputs are the image in uint8, weights, a factor and a term for each output, and the addend
    in 8 bits, if there is one.
    """
    walk = Walk.over(graph)
    found = {node.name: product for node in graph.nodes if (product := _product(walk, node))}
    if not found:
        return graph
    constants: dict[str, Constant] = {}
    changed: dict[str, Node] = {}
    for node in graph.nodes:
        if (added := _addition(walk, found, node)) is not None:
            product, addend, target = added
            changed[node.name] = _added(product, addend, (node, target), constants)
            del found[product.node.name]
    for name, product in found.items():
        operands = _operands(product, product.target.zero, constants)
        attributes = {"result": product.limits}
        changed[name] = _written(product.node, operands, attributes, product.node.writes)
    return rebuilt(graph, [changed.get(n.name, n) for n in graph.nodes], constants=constants)


def _product(walk: Walk, node: Node) -> _Product | None:
    """Describe a convolution that the kernel covers; None for other nodes."""
    if node.operator != "Conv" or node.domain or node.integer("group", 1) != 1:
        return None
    source, constants = _read(walk, node.inputs[0]), walk.graph.constants
    weights, bias = (constants.get(name) for name in (*node.inputs[1:], "")[:2])
    has_bias = len(node.inputs) > 2 and bool(node.inputs[2])
    ending = _ending(walk, node.fused)
    if source is None or ending is None or not isinstance(weights, Dequantized):
        return None
    integers = signed(weights)
    before, after = (walk.graph.value(name) for name in (node.inputs[0], node.outputs[0]))
    if integers is None or integers[1] or weights.scale is None or not before.is_static:
        return None
    outputs, channels, *kernel = weights.shape
    strides, pads = (node.attributes.get(each, ()) for each in ("strides", "pads"))
    assert isinstance(strides, tuple), node
    assert isinstance(pads, tuple), node
    scales = element_count(weights.scale.shape)
    is_covered = (
        source.dtype is DType.UINT8
        and prod(kernel) == 1
        and (scales == 1 or (weights.axis == 0 and scales == outputs))
        and not any(pads)
        and all(stride == 1 for stride in strides)
        and after.is_static
        and before.static_shape[2:] == after.static_shape[2:]
        and outputs % COLUMNS == channels % DEPTH == 0
        and channels <= DEPTH_MAX
        and 0 not in before.static_shape
        and (bias is not None) == has_bias
    )
    if not is_covered:
        return None
    return _Product(node, source, integers[0], weights.scale, bias, *ending)


def _read(walk: Walk, name: str) -> Quantization | None:
    """Return the integers that a value is dequantized from; None if it is not."""
    maker = walk.makers.get(name)
    if maker is None or maker.operator != "DequantizeLinear" or maker.domain:
        return None
    dtype = walk.graph.value(maker.inputs[0]).dtype
    return quantization(maker, dtype, walk.graph.constants)


def _ending(walk: Walk, fused: Sequence[Node]) -> tuple[Quantization, tuple[int, int]] | None:
    """Return how a node rounds its result, if it does no more than a Relu before."""
    names = [each.operator for each in fused]
    if names not in (["QuantizeLinear"], ["Relu", "QuantizeLinear"]):
        return None
    last = fused[-1]
    target = quantization(last, walk.graph.value(last.outputs[0]).dtype, walk.graph.constants)
    if target is None:
        return None
    low, high = LIMITS[target.dtype]
    return target, (max(low, target.zero) if len(fused) > 1 else low, high)


def _addition(
    walk: Walk, found: dict[str, _Product], node: Node
) -> tuple[_Product, Quantization, tuple[Quantization, tuple[int, int]]] | None:
    """Return product, addend and rounding of a sum whose later operand alone it reads."""
    if node.operator != "Add" or node.domain:
        return None
    ending = _ending(walk, node.fused)
    sides = [_read(walk, name) for name in node.inputs]
    shapes = {walk.graph.value(name).shape for name in (*node.inputs, node.outputs[0])}
    if ending is None or len(shapes) > 1 or sides[0] == sides[1]:
        return None
    candidates = []
    for side, other, name in zip(sides, sides[::-1], node.inputs, strict=True):
        maker = walk.makers.get(side.integers) if side is not None else None
        if side is None or other is None or maker is None or maker.name not in found:
            continue
        if walk.sole_reader(name) is node and walk.sole_reader(side.integers) is not None:
            candidates.append((found[maker.name], other))
    if not candidates:
        return None
    order = {each.name: index for index, each in enumerate(walk.graph.nodes)}
    product, addend = max(candidates, key=lambda each: order[each[0].node.name])
    return product, addend, ending


def _added(
    product: _Product,
    addend: Quantization,
    end: tuple[Node, tuple[Quantization, tuple[int, int]]],
    constants: dict[str, Constant],
) -> Node:
    """Write a product and the sum behind it."""
    node, (target, limits) = end
    low, high = (each - product.target.zero for each in product.limits)
    flipped = 128 if addend.dtype is DType.INT8 else 0
    factors = product.target.scale / target.scale, addend.scale / target.scale
    shift = target.zero - (addend.zero + flipped) * factors[1]
    attributes = {"result": limits, "product": (low, high), "numbers": (*factors, shift)}
    operands = (*_operands(product, 0, constants), addend.integers)
    return _written(node, operands, attributes, node.writes)


def _written(
    node: Node,
    operands: Sequence[str],
    attributes: Mapping[str, tuple[int, ...] | tuple[float, ...]],
    writes: Sequence[str],
) -> Node:
    return replace(
        node, operator="QuantizedRows", domain="tightship", fused=(), outputs=tuple(writes),
        inputs=tuple(operands), attributes=dict(attributes),
    )  # fmt: skip


def _operands(product: _Product, zero: int, constants: dict[str, Constant]) -> tuple[str, ...]:
    """Add weights in the kernel's order, and the factor and term of each output, as constants."""
    name, weights, scale, bias = product.node.name, product.weights, product.scale, product.bias
    outputs, channels = weights.shape[:2]
    source, target = product.source, product.target
    ratio = source.scale / target.scale

    def packed() -> Array:
        rows = np.asarray(weights.array(), np.int8).reshape(-1, LANES, channels // DEPTH, DEPTH)
        return np.ascontiguousarray(rows.transpose(0, 2, 1, 3))

    def factors() -> Array:
        scales = np.asarray(scale.array(), np.float64).reshape(-1)
        return np.broadcast_to(scales * ratio, outputs).astype(np.float32)

    def terms() -> Array:
        rows = np.asarray(weights.array()).reshape(outputs, channels)
        sums = rows.sum(1, dtype=np.int64) * source.zero
        found: NDArray[np.float64] = zero - factors().astype(np.float64) * sums
        if bias is not None:
            found += np.asarray(bias.array(), np.float64).reshape(-1) / target.scale
        return found.astype(np.float32)

    sources = (weights, scale, *(() if bias is None else (bias,)))
    names = tuple(f"{name}.{part}" for part in ("rows", "factors", "terms"))
    shape = (outputs // LANES, channels // DEPTH, LANES, DEPTH)
    recipe = (source.scale, source.zero, target.scale, zero)
    constants[names[0]] = Derived(DType.INT8, shape, packed, (weights,), ("quantized rows",))
    constants[names[1]] = Derived(
        DType.FLOAT32, (outputs,), factors, (scale,), ("factors", ratio, outputs)
    )
    constants[names[2]] = Derived(DType.FLOAT32, (outputs,), terms, sources, ("terms", recipe))
    return (source.integers, *names)
