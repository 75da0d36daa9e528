"""Computes half-precision models with products in float32, with planned conversions.

A value of float16 or bfloat16 exists as float32 from the node that computes it to its readers. It
is rounded where its declared type is read, by an output of the graph or an operator that is not
widened, and where the model converts float32 to a half. Constants are widened when they are packed.
"""

from dataclasses import dataclass, field, replace

from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.engine.lower.passes.widened import HALVES, widened
from tightship.graph import DType, Graph, Node
from tightship.graph.operators import Half, row_of

FLOAT = 1

CASTS = frozenset({"Cast", "CastLike"})


def widen_floats(graph: Graph) -> Graph:
    """Make operators whose rows say so read and write float32 instead of half precision."""
    if not any(_is_product(graph, node) for node in graph.nodes):
        return graph
    writer = _Writer(graph)
    for node in graph.nodes:
        writer.take(node)
    for name in graph.outputs:
        writer.narrowed(name)
    return writer.written()


def _is_product(graph: Graph, node: Node) -> bool:
    """Whether a half-precision node does enough work to justify conversions around it."""
    return (
        row_of(node).is_product
        and row_of(node).half is Half.FLOAT32
        and graph.value(node.outputs[0] or node.inputs[0]).dtype in HALVES
    )


@dataclass(slots=True)
class _Writer(GraphWriter):
    wide: dict[str, str] = field(default_factory=dict)
    """Names of the float32 forms, by those of the values."""
    unwritten: set[str] = field(default_factory=set)
    """Values that exist as float32 only."""

    def is_half(self, name: str) -> bool:
        return bool(name) and self.graph.value(name).dtype in HALVES

    def take(self, node: Node) -> None:
        """Append a node, widened if possible."""
        if self.is_repeated_cast(node):
            node = replace(node, operator="Identity", inputs=node.inputs[:1], attributes={})
        if not self.is_widened(node):
            for name in node.reads:
                self.narrowed(name)
            self.nodes.append(node)
            return
        inputs = tuple(self.widened(name) if self.is_half(name) else name for name in node.inputs)
        outputs = tuple(self.named(name) if self.is_half(name) else name for name in node.outputs)
        self.unwritten.update(name for name in node.outputs if self.is_half(name))
        self.nodes.append(replace(node, inputs=inputs, outputs=outputs))

    def is_repeated_cast(self, node: Node) -> bool:
        """Whether a node converts a half to a type that its float32 form stands for already."""
        if node.domain or node.operator not in CASTS:
            return False
        source, target = (
            self.graph.value(name).dtype for name in (node.inputs[0], node.outputs[0])
        )
        return source in HALVES and target in {source, DType.FLOAT32}

    def is_widened(self, node: Node) -> bool:
        half = row_of(node).half
        if node.fused or not isinstance(half, Half):
            return False
        if half is Half.MOVED and all(name in self.graph.constants for name in node.inputs[:1]):
            return False
        return any(self.is_half(name) for name in (*node.inputs, *node.outputs))

    def named(self, name: str) -> str:
        """Name the float32 form of a value."""
        if name not in self.wide:
            self.wide[name] = self.declare(f"{name}.float32", self.graph.value(name).shape)
        return self.wide[name]

    def widened(self, name: str) -> str:
        """Return the float32 form of a value, converted if it has none yet."""
        if name in self.wide:
            return self.wide[name]
        wide = self.named(name)
        constant = self.graph.constants.get(name)
        if constant is None:
            self.cast(name, wide, FLOAT)
        else:
            self.constants[wide] = widened(constant)
        return wide

    def narrowed(self, name: str) -> None:
        """Convert a value that exists only as float32 to its declared type."""
        if name in self.unwritten:
            self.unwritten.remove(name)
            dtype = self.graph.value(name).dtype
            assert dtype is not None
            self.cast(self.wide[name], name, HALVES[dtype])

    def cast(self, source: str, target: str, to: int) -> None:
        self.add("Cast", (source,), target, {"to": to}, name=f"{target}.cast")
