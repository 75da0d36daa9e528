"""Recognizes layer and root-mean-square normalization as exporters write them.

Every pattern ends in one polynomial of the operand `x`, its mean `m` and the inverse deviation `r`:
`r * x * scale - r * m * scale + shift`, without `m` for the root mean square. The search starts at
the deviation.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tightship.engine.lower.passes.polynomial import Algebra, Polynomial, agrees
from tightship.engine.lower.passes.reshaped import reshaped
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Constant, Derived, DType, Fill, Graph, Node
from tightship.graph.constant import Array
from tightship.graph.ir import AttributeValue

READERS_MAX = 12
ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Reciprocal", "Identity", "Pow"})


@dataclass(frozen=True, slots=True)
class _Deviation:
    """Root of the mean of squares of `x`, or of `x` less its mean."""

    inverse: str
    """Name of its inverse in polynomials."""
    atoms: tuple[str, ...]
    """Names that the result is a polynomial of, besides constants."""
    x: str
    mean: str
    """Name of the mean; empty if none is subtracted."""
    axis: int
    epsilon: float


def recognize_normalization(graph: Graph) -> Graph:
    """Replace patterns of LayerNormalization or RMSNormalization over the last axes."""
    algebra, readers = Algebra.of(graph), all_readers(graph)
    joined: dict[str, Node] = {}
    constants: dict[str, Constant] = {}
    for node in graph.nodes:
        deviation = _deviation(algebra, node)
        if deviation is None:
            continue
        for last in reversed(list(_after(readers, node))):
            found = _normalization(algebra, deviation, last)
            if found is not None and is_closed(graph, readers, last, (deviation.x,)):
                joined[last.name], added = found
                constants.update(added)
                break
    nodes = [joined.get(node.name, node) for node in graph.nodes]
    return rebuilt(graph, nodes, constants=constants) if joined else graph


def all_readers(graph: Graph) -> dict[str, list[Node]]:
    """Map each name to the nodes that read it."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.reads:
            readers.setdefault(name, []).append(node)
    return readers


def _after(readers: Mapping[str, list[Node]], node: Node) -> Iterator[Node]:
    """Yield arithmetic that depends on a node, nearest first, up to `READERS_MAX` nodes."""
    reached = {node.name: node}
    queue = [node]
    for current in queue:
        for reader in readers.get(current.outputs[0], ()):
            if len(reached) > READERS_MAX:
                return
            if reader.operator in ARITHMETIC and reader.name not in reached:
                reached[reader.name] = reader
                queue.append(reader)
                yield reader


def is_closed(
    graph: Graph, readers: Mapping[str, list[Node]], last: Node, sources: Collection[str]
) -> bool:
    """Whether only `last` uses values computed between `sources` and `last`."""
    makers = {name: node for node in graph.nodes for name in node.writes}
    inside = {last.name: last}
    queue = [last]
    for node in queue:
        for name in node.reads:
            maker = makers.get(name)
            if name not in sources and maker is not None and maker.name not in inside:
                inside[maker.name] = maker
                queue.append(maker)
    between = [name for node in queue[1:] for name in node.writes]
    return not any(name in graph.outputs for name in between) and all(
        reader.name in inside for name in between for reader in readers.get(name, ())
    )


def _deviation(algebra: Algebra, node: Node) -> _Deviation | None:
    """Return the deviation that a square root, or a power of -1/2, computes."""
    is_inverse = node.operator == "Pow" and algebra.scalar(node.inputs[1]) == -0.5
    if node.domain or not (node.operator == "Sqrt" or is_inverse):
        return None
    variance = dict(algebra.read(node.inputs[0]))
    epsilon = variance.pop((), 0.0)
    factors = next(iter(variance), ())
    mean_square = algebra.made_by(factors[0], "ReduceMean") if len(factors) == 1 else None
    if mean_square is None or variance != {factors: 1.0} or epsilon < 0:
        return None
    axis, centred = _trailing(algebra, mean_square), _squared(algebra, mean_square.inputs[0])
    if axis is None or not centred:
        return None
    root = node.outputs[0]
    inverse = root if is_inverse else f"1/{root}"
    difference = algebra.made_by(centred, "Sub")
    mean = algebra.made_by(difference.inputs[1], "ReduceMean") if difference else None
    if difference and mean and mean.inputs[0] == difference.inputs[0]:
        x, average = mean.inputs[0], mean.outputs[0]
        if _trailing(algebra, mean) == axis:
            return _Deviation(inverse, (root, x, average), x, average, axis, epsilon)
    return _Deviation(inverse, (root, centred), centred, "", axis, epsilon)


def _squared(algebra: Algebra, name: str) -> str:
    """Return the base of a square, or an empty name."""
    square = algebra.made_by(name, "Mul", "Pow")
    if square is None:
        return ""
    base, other = square.inputs
    is_square = base == other if square.operator == "Mul" else algebra.scalar(other) == 2
    return base if is_square else ""


def _trailing(algebra: Algebra, reduction: Node) -> int | None:
    """Return the first reduced axis, if all axes from it to the last are reduced and kept."""
    value = algebra.graph.value(reduction.inputs[0])
    if not value.is_static or reduction.attributes.get("keepdims", 1) != 1:
        return None
    rank = len(value.static_shape)
    axes = axes_of(algebra.graph, reduction)
    if axes is None:
        return None
    reduced = sorted(axis % rank for axis in axes)
    return reduced[0] if reduced == list(range(rank))[-len(reduced) :] else None


def axes_of(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """Return the axes of an attribute or a constant input; None if neither names any."""
    axes = node.attributes.get("axes")
    if isinstance(axes, tuple):
        return tuple(int(axis) for axis in axes) or None
    constant = graph.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if constant is None else tuple(constant.array().reshape(-1).tolist()) or None


def _normalization(
    algebra: Algebra, deviation: _Deviation, last: Node
) -> tuple[Node, dict[str, Constant]] | None:
    """Return the normalization that `last` ends, and its scale and shift."""
    x, graph = deviation.x, algebra.graph
    before, after = graph.value(x), graph.value(last.outputs[0])
    if before.dtype is not DType.FLOAT32 or not before.is_static or before.shape != after.shape:
        return None
    parts = _parts(algebra.made(last, deviation.atoms), deviation)
    if parts is None:
        return None
    room = before.static_shape[deviation.axis :]
    parameters = [_parameter(graph, part, room, before.static_shape) for part in parts]
    if None in parameters:
        return None
    names = [f"{last.name}.scale", f"{last.name}.shift"][: len(parts)]
    attributes: dict[str, AttributeValue] = {
        "axis": deviation.axis, "epsilon": deviation.epsilon,
    }  # fmt: skip
    operator, version = ("LayerNormalization", 17) if deviation.mean else ("RMSNormalization", 23)
    node = replace(
        last, operator=operator, version=version, inputs=(x, *names), attributes=attributes
    )
    return node, {n: p for n, p in zip(names, parameters, strict=True) if p is not None}


Part = tuple[str, float]
"""Name of a constant, or an empty one, and a factor."""


def _parts(whole: Polynomial, deviation: _Deviation) -> list[Part] | None:
    """Return the scale and the shift, if any, of a polynomial that normalizes."""
    main = next((factors for factors in whole if deviation.x in factors), ())
    rest = list(main)
    for atom in (deviation.x, deviation.inverse):
        if atom not in rest:
            return None
        rest.remove(atom)
    factor = whole[main]
    centring = tuple(sorted((deviation.mean, deviation.inverse, *rest)))
    wanted = {main: factor} | ({centring: -factor} if deviation.mean else {})
    others = {factors: c for factors, c in whole.items() if factors not in wanted}
    if len(rest) > 1 or not agrees({f: whole.get(f, 0.0) for f in wanted}, wanted):
        return None
    parts = [(rest[0] if rest else "", factor)]
    for factors, coefficient in others.items():
        if len(factors) > 1 or not deviation.mean or len(parts) == 2:
            return None
        parts.append((factors[0] if factors else "", coefficient))
    return parts


def _parameter(
    graph: Graph, part: Part, room: tuple[int, ...], whole: tuple[int, ...]
) -> Constant | None:
    """Broadcast a constant over the normalized axes; None if it is not one, or does not fit."""
    name, factor = part
    if not name:
        return Fill(np.asarray(factor, np.float32), room)
    constant = graph.constant(name)
    if constant is None or constant.dtype is not DType.FLOAT32 or len(constant.shape) > len(whole):
        return None
    padded = (1,) * (len(whole) - len(constant.shape)) + constant.shape
    inner = padded[len(whole) - len(room) :]
    outside = padded[: len(whole) - len(room)]
    if any(d != 1 for d in outside):
        return None
    if any(d not in (1, n) for d, n in zip(inner, room, strict=True)):
        return None
    if inner == room and factor == 1:
        return reshaped(constant, room)

    def compute() -> Array:
        scaled = np.multiply(constant.array().reshape(inner), factor, dtype=np.float32)
        return np.ascontiguousarray(np.broadcast_to(scaled, room))

    return Derived(DType.FLOAT32, room, compute, (constant,), ("spread", factor))
