"""Moves a scale and a shift behind a Relu or Clip before it, where the convolution absorbs them.

`max(x, 0) * s + t` is `max(x * s + t, t)` for s > 0: a Clip, which every kernel of convolutions
applies as it writes, instead of two more operations, which some do not.
"""

from dataclasses import dataclass
from math import inf, isfinite

from tightship.engine.lower.passes.fold_batch_norm import is_inference_norm
from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.engine.lower.passes.walk import Walk
from tightship.graph import DType, Graph, Node, element_count


@dataclass(frozen=True, slots=True)
class _Limits:
    """Clip of `value * scale + shift`, instead of a clipped value that is scaled and shifted."""

    low: float
    high: float
    scale: float = 1.0
    shift: float = 0.0

    def scaled(self, factor: float) -> "_Limits":
        """Multiply the result by a positive factor."""
        return _Limits(
            self.low * factor, self.high * factor, self.scale * factor, self.shift * factor
        )

    def shifted(self, term: float) -> "_Limits":
        """Add a term to the result."""
        return _Limits(self.low + term, self.high + term, self.scale, self.shift + term)


def lift_scale(graph: Graph) -> Graph:
    """Rewrite Relu or Clip, Mul and Add of numbers to Mul, Add and Clip, behind a convolution."""
    walk = Walk.over(graph)
    writer = GraphWriter(graph)
    absorbed: set[str] = set()
    for node in graph.nodes:
        if node.name in absorbed:
            continue
        limits = _limits(walk, node) if _is_behind_convolution(walk, node) else None
        chain = [node]
        while limits is not None and (found := _followed(walk, chain[-1], limits)) is not None:
            follower, limits = found
            chain.append(follower)
        if limits is None or len(chain) == 1:
            writer.nodes.append(node)
        else:
            absorbed.update(each.name for each in chain[1:])
            _write(writer, node, limits, chain[-1].outputs[0])
    return writer.written()


def _is_behind_convolution(walk: Walk, node: Node) -> bool:
    """Whether a node alone reads a convolution, or a normalization behind one."""
    if node.operator not in ("Relu", "Clip") or node.domain or node.fused:
        return False
    name = node.inputs[0]
    while (maker := walk.makers.get(name)) is not None and walk.counts[name] == 1:
        if maker.operator == "Conv" and not maker.domain:
            weights = walk.graph.constants.get(maker.inputs[1])
            value = walk.graph.value(name)
            return weights is not None and value.dtype is DType.FLOAT32 and value.shape is not None
        if not is_inference_norm(maker):
            return False
        name = maker.inputs[0]
    return False


def _limits(walk: Walk, node: Node) -> _Limits | None:
    """Return the limits of a Relu or Clip, if they are constant."""
    if node.operator == "Relu":
        return _Limits(0.0, inf)
    if node.version < 11:
        low, high = (node.number(name, edge) for name, edge in (("min", -inf), ("max", inf)))
        return _Limits(low, high) if low <= high else None
    found = []
    for name, edge in zip((*node.inputs[1:], "", "")[:2], (-inf, inf), strict=True):
        found.append(_number(walk.graph, name) if name else edge)
    low_or_none, high_or_none = found
    if low_or_none is None or high_or_none is None or not low_or_none <= high_or_none:
        return None
    return _Limits(low_or_none, high_or_none)


def _followed(walk: Walk, node: Node, limits: _Limits) -> tuple[Node, _Limits] | None:
    """Return the Mul or Add of a number behind a node, and the limits with it; else None."""
    name = node.outputs[0]
    follower = walk.sole_reader(name)
    if follower is None or follower.operator not in ("Mul", "Add") or follower.domain:
        return None
    number = _number(walk.graph, follower.inputs[1 if follower.inputs[0] == name else 0])
    shapes = {walk.graph.value(each).shape for each in (name, follower.outputs[0])}
    if number is None or not isfinite(number) or len(shapes) > 1:
        return None
    if follower.operator == "Add":
        return follower, limits.shifted(number)
    return (follower, limits.scaled(number)) if number > 0.0 else None


def _number(graph: Graph, name: str) -> float | None:
    """Return a float32 constant of one element; None for others."""
    constant = graph.constants.get(name)
    if constant is None or constant.dtype is not DType.FLOAT32:
        return None
    return float(constant.array().reshape(())) if element_count(constant.shape) == 1 else None


def _write(writer: GraphWriter, node: Node, limits: _Limits, result: str) -> None:
    """Write Mul and Add of numbers, those that change something, and a Relu or Clip."""
    last, shape = node.inputs[0], writer.graph.value(node.inputs[0]).shape
    for operator, number, none in (("Mul", limits.scale, 1.0), ("Add", limits.shift, 0.0)):
        if number != none:
            constant = writer.number(f"{node.name}.{operator.lower()}", number)
            moved = writer.declare(f"{constant}.result", shape)
            last = writer.add(operator, (last, constant), moved)
    if (limits.low, limits.high) == (0.0, inf):
        writer.add("Relu", (last,), result, name=node.name)
        return
    low, high = (
        writer.number(f"{node.name}.{name}", number) if isfinite(number) else ""
        for name, number in (("low", limits.low), ("high", limits.high))
    )
    inputs = (last, low, high) if high else (last, low) if low else (last,)
    writer.add("Clip", inputs, result, name=node.name)
