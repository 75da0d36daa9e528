"""Bytes of a decoder's programs for 1, 2, 4, ... new tokens, of which few are lowered.

A plan counts all of them. Values, and scratch memory of most kernels, grow with the tokens, so that
the program for the most tokens has the largest arena. Attention of few tokens alone divides the
keys, and has memory for each part, which grows with the tokens again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tightship._core import HostResource
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.program.program import PackedWeight
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.weights.weight_store import PackedCopy, WeightStore, aligned_offsets
from tightship.graph import Fill
from tightship.graph.symbolic import SymbolicConstant

FEW = 16
"""Most tokens of a program whose attention divides the keys."""

Lower = Callable[[int, PackedBefore], CompiledModel]
"""Lowers the program for a number of new tokens, over weights that are packed, by name."""


class _Unpacked:
    """Place of weights that are counted only."""

    address = 0

    def array(self) -> NDArray[np.uint8]:
        raise AssertionError("weights of a plan are not packed")


@dataclass(slots=True)
class CountedWeights:
    """Weights of several programs, each counted once, as a store packs them once.

    Attributes:
        size_bytes: Bytes of those that were added.
    """

    size_bytes: int = 0
    _store: WeightStore = field(default_factory=lambda: WeightStore(HostResource()))

    def hold(self, copies: Sequence[PackedCopy]) -> None:
        """Hold weights that are packed already; they do not count."""
        self._store.adopt(copies)

    def add(self, weights: Sequence[PackedWeight]) -> list[PackedWeight]:
        """Count the weights of a program that are not held.

        Numbers that follow from lengths count for each program, because a loaded model's own
        program has them as expressions, which equal none.

        Returns:
            Those of them whose constants are not held in another layout either.
        """
        missing = self._store.missing(weights)
        new = [weight for weight in missing if not self._store.has_constant(weight.constant)]
        kept = [weight for weight in missing if not isinstance(weight.constant, SymbolicConstant)]
        self._store.adopt([PackedCopy(weight, _Unpacked(), 0) for weight in kept])
        self.size_bytes += aligned_offsets(missing)[1]
        return new

    def by_name(self) -> dict[str, list[PackedWeight]]:
        """Return the layouts of each constant."""
        return self._store.by_name()


def lowered_steps(chunk: int, lower: Lower, weights: CountedWeights) -> dict[int, CompiledModel]:
    """Lower the programs that tell the bytes of all; add the weights of all.

    These are the programs for the most tokens and for one, and those between that may have the
    largest arena: nothing of a program for n tokens is larger than n times the same for one, unless
    the program for the most tokens has it too.

    Args:
        chunk: Most tokens of a program.
        lower: Lowers a program.
        weights: Weights of the model's own program; gets those of the others.

    Returns:
        Programs by the number of new tokens.
    """
    made: dict[int, CompiledModel] = {}

    def add(steps: int) -> list[PackedWeight]:
        made[steps] = lower(steps, weights.by_name())
        return weights.add(made[steps].placement.lowered.weights)

    further = add(chunk)
    if chunk > 1:
        add(1)
    largest, one = (made[steps].placement.arena_bytes for steps in (chunk, 1))
    between = [1 << bit for bit in reversed(range(1, chunk.bit_length() - 1))]
    for steps in between:
        if steps <= FEW and steps * one > largest:
            add(steps)
    shared = CountedWeights()
    shared.add(made[1].placement.lowered.weights)
    changing = shared.add(further)
    for steps in between:
        if steps not in made:
            weights.size_bytes += sum(_bytes_of_fewer(each, steps, chunk) for each in changing)
    return made


def _bytes_of_fewer(weight: PackedWeight, steps: int, chunk: int) -> int:
    """Return the bytes that a constant of the largest program has in one for fewer tokens."""
    size, shape = weight.size_bytes, weight.constant.shape
    if isinstance(weight.constant, Fill) and chunk not in shape:
        return 0  # ones of a normalization, which the programs share
    if chunk in shape:
        size = -(-size * steps // chunk)
    return -(-size // ALIGNMENT) * ALIGNMENT
