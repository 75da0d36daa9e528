"""How weights change by their gradients."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sgd:
    """Stochastic gradient descent: `w - rate * v`, where `v` is `momentum * v + d(w)`.

    Attributes:
        rate: The learning rate.
        momentum: How much of its velocity a weight keeps; at 0 none is stored.
    """

    rate: float = 0.01
    momentum: float = 0.0


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam, as Kingma and Ba's first algorithm: means corrected by the number of the step.

    Attributes:
        rate: The learning rate.
        beta1: How much the mean of gradients keeps.
        beta2: How much the mean of their squares keeps.
        epsilon: Added to the root of the corrected mean of squares.
    """

    rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


Optimizer = Sgd | Adam


def state_of(optimizer: Optimizer) -> tuple[str, ...]:
    """What an optimizer keeps of each weight, as large as it is."""
    if isinstance(optimizer, Adam):
        return ("mean", "square")
    return ("velocity",) if optimizer.momentum else ()
