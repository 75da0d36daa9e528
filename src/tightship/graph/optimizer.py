"""Optimizers: rules by which weights change with their gradients."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tightship.errors import InputError
from tightship.public_calls import public_methods


@public_methods
@dataclass(frozen=True, slots=True)
class Sgd:
    """Stochastic gradient descent: `w - rate * v`, where `v` is `momentum * v + d(w)`.

    Equal to `torch.optim.SGD` without dampening.

    Attributes:
        rate: Learning rate.
        momentum: Factor of the velocity that a weight keeps; at 0 no velocity is stored.
        weight_decay: Factor of each weight that is added to its gradient.
        nesterov: Whether a weight moves by `d(w) + momentum * v` in place of `v`.
        clip_norm: Largest norm of all gradients together; before anything else they are scaled to
            it. None skips that pass.
        decays_vectors: Whether weights of rank below two decay as well: biases, and scales of
            normalizations.
        rate_factors: Factors of the rate by weight name, such as 0.1 for layers trained before.

    Raises:
        InputError: A number is negative or NaN, or `nesterov` is set without momentum.
    """

    rate: float = 0.01
    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    clip_norm: float | None = None
    decays_vectors: bool = True
    rate_factors: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _check("rate", self.rate)
        _check("momentum", self.momentum)
        _check("weight_decay", self.weight_decay)
        _check_norm(self.clip_norm)
        _check_factors(self.rate_factors)
        if self.nesterov and not self.momentum:
            raise InputError("`nesterov` looks ahead by momentum, and `momentum` is 0; give both.")


@public_methods
@dataclass(frozen=True, slots=True)
class Adam:
    """Adam, the first algorithm of Kingma and Ba: means corrected by the number of the step.

    With `weight_decay` it is AdamW, as `torch.optim.AdamW`: weights decay by themselves, and
    gradients are not changed.

    Attributes:
        rate: Learning rate.
        beta1: Factor that the mean of gradients keeps.
        beta2: Factor that the mean of their squares keeps.
        epsilon: Number added to the root of the corrected mean of squares.
        weight_decay: Factor, times the rate, of each weight that is subtracted in a step.
        clip_norm: Largest norm of all gradients together, as for `Sgd`.
        decays_vectors: Whether weights of rank below two decay as well.
        rate_factors: Factors of the rate by weight name; a weight decays by its own rate.

    Raises:
        InputError: A number is negative or NaN, or a beta is 1 or more.
    """

    rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float | None = None
    decays_vectors: bool = True
    rate_factors: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _check("rate", self.rate)
        _check("beta1", self.beta1, below=1)
        _check("beta2", self.beta2, below=1)
        _check("epsilon", self.epsilon)
        _check("weight_decay", self.weight_decay)
        _check_norm(self.clip_norm)
        _check_factors(self.rate_factors)


Optimizer = Sgd | Adam
"""Any optimizer."""


def state_of(optimizer: Optimizer) -> tuple[str, ...]:
    """Name what an optimizer stores for each weight, in the weight's size."""
    if isinstance(optimizer, Adam):
        return ("mean", "square")
    return ("velocity",) if optimizer.momentum else ()


def _check(name: str, number: float, below: float = math.inf) -> None:
    if not 0 <= number < below:
        raise InputError(f"`{name}` is {number}; it must be at least 0, and below {below}.")


def _check_factors(factors: Mapping[str, float]) -> None:
    for name, factor in factors.items():
        _check(f"rate_factors[{name!r}]", factor)


def _check_norm(limit: float | None) -> None:
    if limit is not None and not limit > 0:
        raise InputError(
            f"`clip_norm` is {limit}; it must be above 0: `math.inf` to clip nothing, and only to "
            "refuse gradients that are not finite."
        )
