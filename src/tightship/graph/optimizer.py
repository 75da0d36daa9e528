"""How weights change by their gradients."""

import math
from dataclasses import dataclass

from tightship.errors import InputError


@dataclass(frozen=True, slots=True)
class Sgd:
    """Stochastic gradient descent: `w - rate * v`, where `v` is `momentum * v + d(w)`.

    Attributes:
        rate: The learning rate.
        momentum: How much of its velocity a weight keeps; at 0 none is stored.

    Raises:
        InputError: One of them is negative or no number.
    """

    rate: float = 0.01
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _check("rate", self.rate)
        _check("momentum", self.momentum)


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam, as Kingma and Ba's first algorithm: means corrected by the number of the step.

    Attributes:
        rate: The learning rate.
        beta1: How much the mean of gradients keeps.
        beta2: How much the mean of their squares keeps.
        epsilon: Added to the root of the corrected mean of squares.

    Raises:
        InputError: One of them is negative or no number, or a beta is 1 or more.
    """

    rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check("rate", self.rate)
        _check("beta1", self.beta1, below=1)
        _check("beta2", self.beta2, below=1)
        _check("epsilon", self.epsilon)


Optimizer = Sgd | Adam


def state_of(optimizer: Optimizer) -> tuple[str, ...]:
    """What an optimizer keeps of each weight, as large as it is."""
    if isinstance(optimizer, Adam):
        return ("mean", "square")
    return ("velocity",) if optimizer.momentum else ()


def _check(name: str, number: float, below: float = math.inf) -> None:
    if not 0 <= number < below:
        raise InputError(f"`{name}` is {number}; it must be at least 0, and below {below}.")
