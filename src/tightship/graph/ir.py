"""Intermediate representation: values, nodes and the graph that connects them.

Everything here is frozen; a pass returns a new graph. A graph is checked once, when it is made:
every name is defined once, before it is read, so `nodes` is an order in which the graph can run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from functools import cached_property
from typing import TYPE_CHECKING

from tightship.brief import brief
from tightship.errors import GraphError
from tightship.graph.constant import Constant
from tightship.graph.layer import Layer
from tightship.graph.layout import DType, Shape, size_bytes

if TYPE_CHECKING:
    from tightship.graph.few_layers import FewLayers


@brief
@dataclass(frozen=True, slots=True)
class Value:
    """Tensor of the graph, or an opaque object (`dtype` is None: sequence, optional).

    `shape` is None if the rank is unknown. A dimension is an int, a symbol's name, or None if it
    depends on data.
    """

    name: str
    dtype: DType | None = None
    shape: Shape | None = None

    _static: tuple[int, ...] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape = self.shape
        if shape is not None:
            if self.dtype is None or self.dtype is DType.STRING:
                shape = None
            else:
                for dimension in shape:
                    if not isinstance(dimension, int):
                        shape = None
                        break
        object.__setattr__(self, "_static", shape)

    @property
    def is_static(self) -> bool:
        """Whether the value's size is known: a tensor of numbers with a static shape."""
        return self._static is not None

    @property
    def static_shape(self) -> tuple[int, ...]:
        """Shape of a static value."""
        assert self._static is not None, self
        return self._static

    @property
    def size_bytes(self) -> int:
        """Bytes of a static value as a dense array."""
        assert self.dtype is not None, self
        return size_bytes(self.dtype, self.static_shape)


@brief
@dataclass(frozen=True, slots=True)
class Node:
    """Operator applied to values; `""` among inputs or outputs marks one left out."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, "AttributeValue"] = field(default_factory=dict)
    domain: str = ""
    version: int = 1
    """Opset version of `domain` that defines the operator."""
    fused: tuple["Node", ...] = ()
    """Nodes that run on this one's output, in order, in the same kernel. Values between them exist
    nowhere else: only the last one's outputs are written."""

    reads: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Distinct names that this node reads, with subgraph captures and fused operands."""
    writes: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Names that this node defines."""
    subgraphs: tuple["Graph", ...] = field(init=False, repr=False, compare=False)
    """Bodies of If, Loop and Scan, in the order of their attributes."""

    def __post_init__(self) -> None:
        graphs: tuple[Graph, ...] = ()
        if self.attributes:
            graphs = tuple([each for each in self.attributes.values() if isinstance(each, Graph)])
        names = [name for name in self.inputs if name]
        for graph in graphs:
            names.extend(graph.captures)
        if self.fused:
            inner = {name for node in (self, *self.fused) for name in node.outputs}
            names.extend(n for node in self.fused for n in node.inputs if n and n not in inner)
        last = self.fused[-1] if self.fused else self
        object.__setattr__(self, "subgraphs", graphs)
        object.__setattr__(self, "reads", _one_of(self.inputs, tuple(dict.fromkeys(names))))
        writes = tuple([name for name in last.outputs if name])
        object.__setattr__(self, "writes", _one_of(last.outputs, writes))

    @property
    def operands(self) -> tuple[str, ...]:
        """Inputs of the node, then the captures of each of its subgraphs."""
        return (*self.inputs, *(name for graph in self.subgraphs for name in graph.captures))

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute of one integer.

        Args:
            name: Name of the attribute.
            default: Value if the node does not set it; a node must set one without a default.
        """
        value = self.attributes.get(name, default)
        assert isinstance(value, int), (self.name, name, value)
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute of one number.

        Args:
            name: Name of the attribute.
            default: Value if the node does not set it; a node must set one without a default.
        """
        value = self.attributes.get(name, default)
        assert isinstance(value, int | float), (self.name, name, value)
        return float(value)

    def absorbed(self) -> "Node":
        """Merge the first fused node into this one, keeping the names that it reads."""
        first, *fused = self.fused
        node = object.__new__(Node)
        for entry, value in zip(
            NODE_FIELDS,
            (self.name, self.operator, self.inputs, first.outputs, self.attributes, self.domain,
             self.version, tuple(fused), self.reads, self.writes, self.subgraphs),
            strict=True,
        ):  # fmt: skip
            object.__setattr__(node, entry, value)
        return node


def _one_of(names: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    """`found`, as the object `names` where they are equal: a graph has many nodes."""
    return names if names == found else found


NODE_FIELDS = tuple(entry.name for entry in dataclass_fields(Node))


@brief
@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which they can run.

    `known` holds values that follow from shapes alone (found by type inference); the nodes that
    compute them are still in `nodes`. `captures` are names that a subgraph takes from the graph
    around it.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Mapping[str, Value]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Constant] = field(default_factory=dict)
    known: Mapping[str, Constant] = field(default_factory=dict)
    captures: tuple[str, ...] = ()
    layers: "FewLayers | None" = field(default=None, repr=False)
    """Layers of which it has few; None if it has all. A rewritten graph still has few of them."""
    few: "Graph | None" = field(default=None, init=False, repr=False)
    """The same with few of its equal layers; none has been made of a changed one."""

    def __post_init__(self) -> None:
        defined = set(self.inputs) | set(self.constants) | set(self.captures)
        for node in self.nodes:
            for name in node.reads:
                if name not in defined:
                    raise GraphError(
                        f"Node `{node.name}` ({node.operator}) reads `{name}`, which no input, "
                        "constant or earlier node defines: the graph is cyclic, or not in order."
                    )
            for name in node.writes:
                if name in defined:
                    raise GraphError(
                        f"Node `{node.name}` ({node.operator}) defines `{name}` a second time."
                    )
                defined.add(name)
        for name in self.outputs:
            if name not in defined:
                raise GraphError(f"Output `{name}` of graph `{self.name}` is defined nowhere.")

    @cached_property
    def reads(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of the nodes that read each name, in order."""
        found: dict[str, tuple[int, ...]] = {}
        for index, node in enumerate(self.nodes):
            for name in node.reads:
                found[name] = (*found.get(name, ()), index)
        return found

    @cached_property
    def used(self) -> frozenset[str]:
        """Names that a node reads, or that are outputs."""
        return frozenset(self._reads())

    def retyped(
        self,
        nodes: tuple[Node, ...],
        values: Mapping[str, Value],
        constants: Mapping[str, Constant],
        known: Mapping[str, Constant],
    ) -> "Graph":
        """Make the graph for other shapes, with nodes of the same names and order, unchecked.

        `values`, `constants` and `known` take the place of the graph's own.
        """
        graph = object.__new__(Graph)
        fields = (
            self.name, self.inputs, self.outputs, values, nodes, constants, known, self.captures,
            self.layers, None,
        )  # fmt: skip
        for entry, value in zip(dataclass_fields(Graph), fields, strict=True):
            object.__setattr__(graph, entry.name, value)
        graph.__dict__["reads"] = self.reads
        return graph

    def value(self, name: str) -> Value:
        """Return the type of a name; an unknown one if inference found nothing."""
        return self.values.get(name) or Value(name)

    def constant(self, name: str) -> Constant | None:
        """Return the constant of this name, given or known from shapes; None if computed."""
        return self.constants.get(name) or self.known.get(name)

    def uses(self) -> dict[str, int]:
        """Count the nodes that read each name; being a graph output counts as one more."""
        counts: dict[str, int] = {}
        for name in self._reads():
            counts[name] = counts.get(name, 0) + 1
        return counts

    def _reads(self) -> Iterator[str]:
        for node in self.nodes:
            yield from node.reads
        yield from self.outputs


def leading_to(outputs: Iterable[str], nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes that an output depends on, in order."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.writes):
            wanted.update(node.reads)
            kept.append(node)
    return tuple(reversed(kept))


AttributeValue = (
    int
    | float
    | str
    | bytes
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[str, ...]
    | Constant
    | Graph
    | Layer
)
"""Types of an attribute; a list of strings is `tuple[str, ...]`."""
