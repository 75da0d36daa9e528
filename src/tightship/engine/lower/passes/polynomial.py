"""Reads a value as a polynomial of others, independent of the order of factors and terms.

`0.5 * x * (1 + e)`, `x * (0.5 * e + 0.5)` and `(x / 2) * e + x / 2` are all
`{("x",): 0.5, ("e", "x"): 0.5}`.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tightship.graph import Constant, Graph, Node, element_count
from tightship.graph.symbolic import depends_on_lengths

Polynomial = Mapping[tuple[str, ...], float]
"""Coefficient of each product of sorted names; `()` is the constant term."""

TERMS_MAX = 6
DEPTH_MAX = 12
DEGREE_MAX = 4
TOLERANCE = 1e-4
"""Relative difference up to which two coefficients count as one number."""


@dataclass(frozen=True, slots=True)
class Algebra:
    """Reader of sums, products and small powers of a graph's values."""

    graph: Graph
    makers: Mapping[str, Node]
    counts: Mapping[str, int]

    @classmethod
    def of(cls, graph: Graph) -> "Algebra":
        """Make the algebra of a graph."""
        makers = {name: node for node in graph.nodes for name in node.writes}
        return cls(graph, makers, graph.uses())

    def scalar(self, name: str) -> float | None:
        """Return the number in a constant of one element, else None."""
        constant = self.graph.constant(name) if name else None
        return number_of(constant) if constant is not None else None

    def made_by(self, name: str, *operators: str) -> Node | None:
        """Return the node that makes a value, if it is one of these standard operators."""
        maker = self.makers.get(name)
        fits = maker is not None and not maker.domain and not maker.fused
        return maker if maker is not None and fits and maker.operator in operators else None

    def read(self, name: str, atoms: Collection[str] | None = None) -> Polynomial:
        """Read a value as a polynomial of atoms, names that are not expanded.

        Without `atoms`, these are the values with several readers.
        """
        return self._term(name, atoms, 0)

    def made(self, node: Node, atoms: Collection[str] | None = None) -> Polynomial:
        """Read a node's result, which is always expanded, as a polynomial of atoms."""
        name = node.outputs[0]
        return self._inside(name, atoms, 0) or {(name,): 1.0}

    def _term(self, name: str, atoms: Collection[str] | None, depth: int) -> Polynomial:
        number = self.scalar(name)
        if number is not None:
            return {(): number}
        shared = self.counts.get(name, 0) > 1 if atoms is None else name in atoms
        found = None if shared or depth == DEPTH_MAX else self._inside(name, atoms, depth)
        return found or {(name,): 1.0}

    def _inside(self, name: str, atoms: Collection[str] | None, depth: int) -> Polynomial | None:
        node = self.makers.get(name)
        if node is None or node.domain or node.fused or "axis" in node.attributes:
            return None
        if node.operator in UNARY and len(node.inputs) == 1:
            return UNARY[node.operator](self._term(node.inputs[0], atoms, depth + 1))
        if node.operator in BINARY and len(node.inputs) == 2:
            left, right = (self._term(operand, atoms, depth + 1) for operand in node.inputs)
            return BINARY[node.operator](left, right)
        return None


def _sum(left: Polynomial, right: Polynomial) -> Polynomial | None:
    total = dict(left)
    for factors, coefficient in right.items():
        total[factors] = total.get(factors, 0.0) + coefficient
    kept = {factors: c for factors, c in total.items() if c != 0}
    return kept if 0 < len(kept) <= TERMS_MAX else None


def _scaled(terms: Polynomial, factor: float) -> Polynomial:
    return {factors: coefficient * factor for factors, coefficient in terms.items()}


def _product(left: Polynomial, right: Polynomial) -> Polynomial | None:
    total: Polynomial | None = {}
    for factors, coefficient in left.items():
        for others, other in right.items():
            joined = tuple(sorted((*factors, *others)))
            if total is None or len(joined) > DEGREE_MAX:
                return None
            total = _sum(total, {joined: coefficient * other})
    return total


def _power(base: Polynomial, exponent: Polynomial) -> Polynomial | None:
    if exponent not in ({(): 1.0}, {(): 2.0}, {(): 3.0}):
        return None
    result: Polynomial | None = base
    for _ in range(int(exponent[()]) - 1):
        result = None if result is None else _product(result, base)
    return result


def _inverse(divisor: Polynomial) -> Polynomial | None:
    """Invert a single product; each of its factors is then named `1/factor`."""
    if len(divisor) != 1:
        return None
    ((factors, coefficient),) = divisor.items()
    inverse = tuple(sorted(f"1/{factor}" for factor in factors))
    return {inverse: 1 / coefficient} if coefficient else None


def _quotient(left: Polynomial, right: Polynomial) -> Polynomial | None:
    inverse = _inverse(right)
    return None if inverse is None else _product(left, inverse)


UNARY: Mapping[str, Callable[[Polynomial], Polynomial | None]] = {
    "Identity": lambda only: only,
    "Neg": lambda only: _scaled(only, -1.0),
    "Reciprocal": _inverse,
}
BINARY: Mapping[str, Callable[[Polynomial, Polynomial], Polynomial | None]] = {
    "Add": _sum,
    "Sub": lambda left, right: _sum(left, _scaled(right, -1.0)),
    "Mul": _product,
    "Div": _quotient,
    "Pow": _power,
}


def number_of(constant: Constant) -> float | None:
    """Return the number in a constant of one element that does not depend on symbolic lengths."""
    if depends_on_lengths(constant):
        return None
    if element_count(constant.shape) != 1 or constant.dtype.numpy.kind not in "fiu":
        return None
    return float(constant.array().reshape(()))


def agrees(found: Polynomial, wanted: Polynomial) -> bool:
    """Whether two polynomials are equal up to the rounding of their coefficients."""
    return found.keys() == wanted.keys() and all(
        math.isclose(found[factors], coefficient, rel_tol=TOLERANCE)
        for factors, coefficient in wanted.items()
    )
