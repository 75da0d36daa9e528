"""What a builder has so far."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.engine.lower.passes.dequantized import Measured, Quantization
from tightship.engine.lower.steps.packed_weights import PackedWeights
from tightship.engine.program.program import LoweredStep, Operand, Slot
from tightship.graph import Constant


@dataclass(slots=True)
class Records:
    """Steps and what they work on, in the order in which they were added.

    Attributes:
        weights: Constants as kernels want them.
        steps: Kernel calls.
        slots: Rooms for values.
        homes: Where each value is.
        names: The values in each slot of the arena.
        copies: Values in other layouts than at home.
        added: Constants that emitters derive from the graph's.
        objects: Constants that are objects.
        deferred: Values that wait until somebody asks where they are.
    """

    weights: PackedWeights
    steps: list[LoweredStep] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    homes: dict[str, Operand] = field(default_factory=dict)
    names: dict[int, list[str]] = field(default_factory=dict)
    copies: dict[str, list[Operand]] = field(default_factory=dict)
    added: dict[str, Constant] = field(default_factory=dict)
    objects: dict[str, Constant] = field(default_factory=dict)
    deferred: dict[str, tuple[Quantization | Measured, Callable[[], None]]] = field(
        default_factory=dict
    )
