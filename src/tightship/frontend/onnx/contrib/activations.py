"""Activations of the domain com.microsoft."""

from collections.abc import Sequence

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import Translation


def gelu(s: Pattern) -> None:
    """Decompose Gelu, which uses the error function."""
    s.give(0, s("Gelu", s.input(0)))


def bias_gelu(s: Pattern) -> None:
    """Decompose BiasGelu, Gelu of a sum."""
    s.give(0, s("Gelu", s("Add", s.input(0), s.input(1))))


def fast_gelu(s: Pattern) -> None:
    """Decompose FastGelu, which uses the hyperbolic tangent, of a sum if there is a bias."""
    x = s("Add", s.input(0), s.input(1)) if s.input(1) else s.input(0)
    s.give(0, s("Gelu", x, approximate="tanh"))


def quick_gelu(s: Pattern) -> None:
    """Decompose QuickGelu, `x * sigmoid(alpha * x)`."""
    x = s.input(0)
    inner = s("Mul", x, s.like(s.number("alpha"), x))
    s.give(0, s("Mul", x, s("Sigmoid", inner)))


def activated(s: Pattern, name: str, x: str, parameters: Sequence[float] = ()) -> str:
    """Write a fused operator's activation of `x`."""
    if not name:
        return x
    if name in ("Relu", "Sigmoid", "Tanh") and not parameters:
        return s(name, x)
    if name == "LeakyRelu":
        return s(name, x, alpha=parameters[0] if parameters else 0.01)
    if name == "HardSigmoid" and len(parameters) == 2:
        return s(name, x, alpha=parameters[0], beta=parameters[1])
    if name == "Clip" and len(parameters) == 2:
        low, high = (s.like(bound, s.input(0)) for bound in parameters)
        return s(name, x, low, high)
    raise s.refusal(
        f"the activation `{name}` with {len(parameters)} parameters",
        "supported are Clip, HardSigmoid, LeakyRelu, Relu, Sigmoid and Tanh",
    )


ACTIVATIONS = {
    "BiasGelu": Translation(bias_gelu, "A B", "C"),
    "FastGelu": Translation(fast_gelu, "X bias?", "Y"),
    "Gelu": Translation(gelu, "X", "Y"),
    "QuickGelu": Translation(quick_gelu, "X", "Y", {"alpha": 1.702}),
}
"""Translations by operator."""
