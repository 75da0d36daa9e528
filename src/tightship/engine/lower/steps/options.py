"""What kernel selection may do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tightship.engine.lower.steps.alike_layers import LayerRun
from tightship.engine.program.program import PackedWeight


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen before: by a measurement, or for the same nodes in another order.

    Attributes:
        layouts: Of images: `library` or `blocked`.
        stream_weights: Whether large weights are streamed past few rows.
        like_outputs: Values that lie as if they were outputs, since what they are computed again
            of is one.
    """

    layouts: str
    stream_weights: bool
    like_outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Options:
    """What kernel selection may do."""

    use_onednn: bool = True
    use_native: bool = True
    use_reference: bool = True
    in_place: bool = True
    choose_layouts: bool = True
    stream_weights: bool = True
    split_products: bool = True
    """Products on the processor's unit for bfloat16 matrices, each number in three parts."""
    blocked: bool = False
    """Channels in blocks of a register's width instead of what the library prefers."""
    like_outputs: frozenset[str] = frozenset()
    """As in `Choice`."""
    packed: Mapping[str, Sequence[PackedWeight]] | None = None
    """Constants packed already, by name; None if no other program has any."""
    repeats: Sequence[LayerRun] = ()
    """Layers of the graph that are alike."""
    go_on: Callable[[], None] | None = None
    """Called before each node; raises where nobody waits for the program any more."""
