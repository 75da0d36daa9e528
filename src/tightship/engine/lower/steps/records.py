"""Records of a program under construction."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.engine.lower.passes.dequantized import Measured, Quantization
from tightship.engine.lower.steps.packed_weights import PackedWeights
from tightship.engine.program.program import LoweredStep, Operand, Slot
from tightship.graph import Constant


@dataclass(slots=True)
class Records:
    """Steps and their operands, in the order in which they were added.

    Attributes:
        weights: Constants in the layouts of their kernels.
        steps: Kernel calls.
        slots: Slots of values.
        homes: Home operand of each value.
        names: Values in each slot of the arena.
        copies: Copies of values in other layouts than at home.
        added: Constants that emitters derive from the graph's.
        objects: Constants that are Python objects.
        largest: Largest shapes of values whose shapes depend on data, as far as they are known.
        deferred: Values whose step is left out until their home is needed.
    """

    weights: PackedWeights
    steps: list[LoweredStep] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    homes: dict[str, Operand] = field(default_factory=dict)
    names: dict[int, list[str]] = field(default_factory=dict)
    copies: dict[str, list[Operand]] = field(default_factory=dict)
    added: dict[str, Constant] = field(default_factory=dict)
    objects: dict[str, Constant] = field(default_factory=dict)
    largest: dict[str, tuple[int, ...]] = field(default_factory=dict)
    deferred: dict[str, tuple[Quantization | Measured, Callable[[], None]]] = field(
        default_factory=dict
    )
