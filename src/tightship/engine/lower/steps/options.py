"""Options of kernel selection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tightship._core import MemoryDesc
from tightship.engine.program.program import Body, Lowered, PackedWeight
from tightship.errors import GraphError
from tightship.graph import Graph, Node
from tightship.graph.equal_runs import LayerRun


@dataclass(frozen=True, slots=True)
class Choice:
    """Previous choice, by a measurement or for the same nodes in another order.

    Attributes:
        layouts: Layouts of images, `library` or `blocked`.
        stream_weights: Whether large weights are streamed past few rows.
        like_outputs: Values laid out as outputs, because they are recomputed copies of one.
    """

    layouts: str
    stream_weights: bool
    like_outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BodyMaker:
    """Functions that make the program of a body of control flow.

    Attributes:
        lower: Lowers its graph, with options.
        place: Plans the arena of its program, given its slots that are operands of its step.
    """

    lower: "Callable[[Graph, Options], Lowered]"
    place: Callable[[Lowered, tuple[tuple[int, int], ...]], Body]

    def lowered(self, graph: Graph, options: "Options") -> Lowered | None:
        """Lower a body; return None if one of its nodes has no kernel."""
        try:
            return self.lower(graph, options)
        except GraphError:
            return None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of kernel selection."""

    use_onednn: bool = True
    use_native: bool = True
    use_reference: bool = True
    in_place: bool = True
    choose_layouts: bool = True
    stream_weights: bool = True
    split_products: bool = True
    """Whether to compute products on bfloat16 matrix units, each number in three parts."""
    half_products: bool = False
    """Whether products of many numbers round what they multiply to bfloat16; sums are float32."""
    rounds_activations: bool = False
    """Whether products by weights in blocks all round activations to int8 by block."""
    blocked: bool = False
    """Whether to put channels in blocks of a register's width instead of the library's layout."""
    like_outputs: frozenset[str] = frozenset()
    """Values laid out as outputs, as in `Choice`."""
    winograd: bool = True
    """Whether convolutions of 3x3 may multiply less, by Winograd's algorithm."""
    narrow: frozenset[str] = frozenset()
    """Float32 constants that products multiply by in bfloat16."""
    scratch_room: Mapping[str, int] = field(default_factory=dict)
    """Bytes that its scratch may take, for nodes by name; any number for others."""
    packed: Mapping[str, Sequence[PackedWeight]] | None = None
    """Packed layouts of constants, by name; None if there are no other programs."""
    repeats: Sequence[LayerRun] = ()
    """Repeated layers of the graph."""
    go_on: Callable[[], None] | None = None
    """Function called before each node; raises to abandon the work."""
    in_body: bool = False
    """Whether the graph is a body, whose steps run often, and mostly on few elements."""
    bodies: "BodyMaker | None" = None
    """Functions that make programs of the bodies of control flow, if they run natively."""

    def multiplies_narrow(self, node: Node) -> bool:
        """Whether a node is a product that may multiply by its constant in bfloat16."""
        return len(node.inputs) > 1 and node.inputs[1] in self.narrow

    def packed_layouts(self, name: str) -> list[MemoryDesc]:
        """Layouts, of whatever dimensions, that other programs have packed a constant in."""
        packed = [weight.desc for weight in (self.packed or {}).get(name, ())]
        return [desc for desc in packed if desc is not None]
