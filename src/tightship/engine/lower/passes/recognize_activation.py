"""Recognizes patterns of operators that compute an activation."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tightship.engine.lower.passes.polynomial import TOLERANCE, Algebra, Polynomial, agrees
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import DType, Graph, Node
from tightship.graph.ir import AttributeValue

TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBE = 0.044715
HARD_SLOPE = 1 / 6


@dataclass(frozen=True, slots=True)
class _Activation:
    """Standard operator of one operand."""

    operator: str
    version: int
    operand: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


def recognize_activation(graph: Graph) -> Graph:
    """Replace patterns of Gelu, Swish, Mish, HardSwish, HardSigmoid, Softplus or LeakyRelu.

    Factors and terms may be in any order, and constants folded into one another. Intermediate
    values with other readers are kept, with all that computes them.
    """
    algebra = Algebra.of(graph)
    return rebuilt(graph, [_joined(algebra, node) or node for node in graph.nodes])


def _joined(algebra: Algebra, node: Node) -> Node | None:
    reader = READERS.get(node.operator)
    if reader is None or node.domain or node.fused or len(node.writes) != 1:
        return None
    found = reader(algebra, node)
    if found is None:
        return None
    before, after = algebra.graph.value(found.operand), algebra.graph.value(node.outputs[0])
    if not before.is_static or before.dtype is not DType.FLOAT32:
        return None
    if (before.dtype, before.shape) != (after.dtype, after.shape):
        return None
    return replace(
        node,
        operator=found.operator,
        version=found.version,
        inputs=(found.operand,),
        attributes=found.attributes,
    )


@dataclass(frozen=True, slots=True)
class _Gate:
    """Polynomial `whole` of `node`'s output and of `x`; of the gate alone if `x` is empty."""

    algebra: Algebra
    node: Node
    whole: Polynomial
    x: str

    @property
    def inner(self) -> Polynomial:
        """Operand of the gate's function."""
        return self.algebra.read(self.node.inputs[0])

    @property
    def pair(self) -> tuple[str, ...]:
        """Names of the product of operand and gate, or of the gate alone."""
        return tuple(sorted(name for name in (self.x, self.node.outputs[0]) if name))

    @property
    def factor(self) -> float | None:
        """Factor of `x * gate` if nothing is added, else None."""
        return self.whole[self.pair] if self.whole.keys() == {self.pair} else None


def _gated(algebra: Algebra, node: Node) -> _Activation | None:
    """Recognize a value times a function of it, or a function times a number."""
    whole = algebra.made(node)
    names = {name for factors in whole for name in factors}
    for name in names if len(names) <= 2 else ():
        gate = algebra.made_by(name, *GATES)
        if gate is not None and algebra.counts[name] == 1:
            x = next(iter(names - {name}), "")
            found = GATES[gate.operator](_Gate(algebra, gate, whole, x))
            if found is not None:
                return found
    return None


def _erf(gate: _Gate) -> _Activation | None:
    """Recognize `x / 2 * (1 + erf(x / sqrt(2)))`."""
    x = gate.x
    fits = agrees(gate.whole, {(x,): 0.5, gate.pair: 0.5})
    return _Activation("Gelu", 20, x) if fits and agrees(gate.inner, {(x,): 0.5**0.5}) else None


def _tanh(gate: _Gate) -> _Activation | None:
    """Recognize Gelu's tanh approximation, or `x * tanh(softplus(x))`."""
    x = gate.x
    cubic = {(x,): TANH_SCALE, (x, x, x): TANH_SCALE * TANH_CUBE}
    if agrees(gate.whole, {(x,): 0.5, gate.pair: 0.5}) and agrees(gate.inner, cubic):
        return _Activation("Gelu", 20, x, {"approximate": "tanh"})
    if x and gate.factor == 1 and _softplus_operand(gate.algebra, gate.node.inputs[0]) == x:
        return _Activation("Mish", 18, x)
    return None


def _sigmoid(gate: _Gate) -> _Activation | None:
    """Recognize `x * sigmoid(beta * x)`."""
    x = gate.x
    if not x or gate.factor != 1 or gate.inner.keys() != {(x,)}:
        return None
    return _Activation("Swish", 24, x, {"alpha": gate.inner[(x,)]})


def _hard_sigmoid(gate: _Gate) -> _Activation | None:
    """Recognize `x * hardsigmoid(x)` of slope 1/6."""
    slope, shift = gate.node.number("alpha", 0.2), gate.node.number("beta", 0.5)
    fits = gate.x and gate.factor == 1 and gate.inner == {(gate.x,): 1.0}
    return _hard(gate.x, slope, shift, is_gate=True) if fits else None


def _clip(gate: _Gate) -> _Activation | None:
    """Recognize `clip(a * x + b, 0, c) / c`, alone or times `x`."""
    bounds = _bounds(gate.algebra, gate.node)
    factor = gate.factor
    if bounds is None or factor is None or bounds[0] != 0:
        return None
    (x, *rest) = [factors[0] for factors in gate.inner if len(factors) == 1] or [""]
    line = {(x,): 0.0, (): 0.0} | dict(gate.inner)
    fits = x and not rest and len(line) == 2 and gate.x in ("", x) and () in gate.inner
    if not fits or not math.isclose(bounds[1] * factor, 1, rel_tol=TOLERANCE):
        return None
    return _hard(x, line[(x,)] * factor, line[()] * factor, is_gate=gate.x == x)


def _hard(x: str, slope: float, shift: float, *, is_gate: bool) -> _Activation | None:
    if not is_gate:
        return _Activation("HardSigmoid", 6, x, {"alpha": slope, "beta": shift})
    fits = agrees({(x,): slope, (): shift}, {(x,): HARD_SLOPE, (): 0.5})
    return _Activation("HardSwish", 14, x) if fits else None


def _bounds(algebra: Algebra, clip: Node) -> tuple[float, float] | None:
    """Return both bounds of a Clip, if they are constant."""
    if clip.version < 11:
        low, high = clip.attributes.get("min"), clip.attributes.get("max")
        return (low, high) if isinstance(low, float) and isinstance(high, float) else None
    if len(clip.inputs) != 3:
        return None
    found = algebra.scalar(clip.inputs[1]), algebra.scalar(clip.inputs[2])
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _clipped(algebra: Algebra, node: Node) -> _Activation | None:
    """Recognize a Clip to `[0, 1]` that is a HardSigmoid."""
    name = node.outputs[0]
    return _clip(_Gate(algebra, node, {(name,): 1.0}, ""))


def _logarithm(algebra: Algebra, node: Node) -> _Activation | None:
    """Recognize `log(1 + exp(x))`."""
    x = _softplus_operand(algebra, node.outputs[0])
    return _Activation("Softplus", 1, x) if x else None


def _softplus_operand(algebra: Algebra, name: str) -> str:
    """Return the operand whose softplus a value with at most one reader is, or an empty name."""
    maker = algebra.made_by(name, "Softplus", "Log")
    if maker is None or algebra.counts.get(name, 0) > 1:
        return ""
    if maker.operator == "Softplus":
        return maker.inputs[0]
    inner = algebra.read(maker.inputs[0])
    exponentials = [factors[0] for factors in inner if len(factors) == 1]
    if len(exponentials) != 1 or not agrees(inner, {(exponentials[0],): 1.0, (): 1.0}):
        return ""
    exponential = algebra.made_by(exponentials[0], "Exp")
    is_alone = algebra.counts.get(exponentials[0]) == 1
    return exponential.inputs[0] if exponential is not None and is_alone else ""


def _larger(algebra: Algebra, node: Node) -> _Activation | None:
    """Recognize `max(x, a * x)` with `a` from 0 to 1."""
    if len(node.inputs) != 2:
        return None
    for x, other in (node.inputs, node.inputs[::-1]):
        scaled = algebra.read(other)
        if scaled.keys() == {(x,)} and other != x and 0 <= scaled[(x,)] <= 1:
            return _Activation("LeakyRelu", 16, x, {"alpha": scaled[(x,)]})
    return None


def _chosen(algebra: Algebra, node: Node) -> _Activation | None:
    """Recognize `where(x > 0, x, a * x)`; at 0 both are 0, so `>=` is the same."""
    condition, x, other = node.inputs
    test = algebra.made_by(condition, "Greater", "GreaterOrEqual")
    scaled = algebra.read(other)
    fits = test is not None and test.inputs[0] == x and algebra.scalar(test.inputs[1]) == 0
    if not fits or scaled.keys() != {(x,)} or other == x or algebra.counts[condition] != 1:
        return None
    return _Activation("LeakyRelu", 16, x, {"alpha": scaled[(x,)]})


GATES: Mapping[str, Callable[[_Gate], _Activation | None]] = {
    "Erf": _erf,
    "Tanh": _tanh,
    "Sigmoid": _sigmoid,
    "HardSigmoid": _hard_sigmoid,
    "Clip": _clip,
}
READERS: Mapping[str, Callable[[Algebra, Node], _Activation | None]] = {
    "Mul": _gated,
    "Div": _gated,
    "Clip": _clipped,
    "Log": _logarithm,
    "Max": _larger,
    "Where": _chosen,
}
