"""Gives attention the rows of caches as they are stored, which its kernel widens block by block.

`WidenRows` would widen a whole cache: it stands before the readers of a cache that is stored in
another type than the file's, and no kernel runs it. A cache that the file has as float16 or
bfloat16 is widened by Cast instead. What moves rows on the way to attention moves stored ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.engine.lower.passes.widened import HALVES
from tightship.graph import AttributeValue, DType, Graph, Node
from tightship.graph.new_names import NewNames
from tightship.graph.operators import Category, row_of

DOMAIN, APPEND, WIDEN = "tightship", "AppendRows", "WidenRows"


def read_stored_rows(graph: Graph) -> Graph:
    """Replace widened keys and values of attention by stored ones."""
    writer = _Writer(graph)
    for node in graph.nodes:
        is_attention = (node.domain, node.operator) == (DOMAIN, "Attention")
        changed = writer.reading(node) if is_attention else node
        writer.nodes.append(changed)  # behind the nodes that it reads
    return writer.written()


def why_unread(graph: Graph, widened: Node) -> str:
    """Return why a WidenRows is left: an operator other than attention reads the cache."""
    names, reader, cache = {widened.outputs[0]}, widened, widened.inputs[0]
    for node in graph.nodes:
        cache = node.inputs[0] if node.outputs[:1] == (cache,) else cache
        if names.intersection(node.reads):
            reader = node
            if not _moves(node):
                break
            names.update(node.writes)
    kind = graph.value(widened.inputs[0]).dtype
    assert kind is not None
    return (
        f"The cache `{cache}` cannot be stored as {kind.value}: node "
        f"`{reader.name}` ({reader.operator}) reads it, and the native kernel of attention alone "
        'reads rows as they are stored. Give the model\'s type, `cache="float32"` for most.'
    )


def _moves(node: Node) -> bool:
    """Whether a node moves or converts the rows of a cache."""
    moves = row_of(node).category is Category.RESHAPING or node.operator in ("Transpose", "Expand")
    return not node.domain and (moves or node.operator == "Cast")


@dataclass(slots=True)
class _Writer(GraphWriter):
    """Writes the nodes that move stored rows."""

    names: NewNames = field(init=False)
    known: dict[tuple[str, bool], str] = field(default_factory=dict)
    moved: dict[str, Node] = field(default_factory=dict)
    makers: dict[str, Node] = field(init=False)

    def __post_init__(self) -> None:
        self.names = NewNames(self.graph)
        self.makers = {name: node for node in self.graph.nodes for name in node.writes}

    def reading(self, node: Node) -> Node:
        """Return an attention that reads stored keys and values, where it reads widened ones."""
        query, key, value, *rest = node.inputs
        turned = bool(node.attributes["keys_turned"])
        attributes = dict(node.attributes)
        stored_key, stored_value = self.stored(key, turned=turned), self.stored(value)
        if turned and stored_key:
            attributes["keys_turned"] = 0
        stored_key = stored_key or self.stored(key)
        if stored_key:
            key = self._in_order(stored_key, "key_order", attributes)
        if stored_value:
            value = self._in_order(stored_value, "value_order", attributes)
        return replace(node, inputs=(query, key, value, *rest), attributes=attributes)

    def _in_order(self, name: str, order: str, attributes: dict[str, AttributeValue]) -> str:
        """Return stored rows before a Transpose, which strides of the kernel do instead."""
        moved = self.moved.get(name)
        if moved is None or moved.operator != "Transpose":
            return name
        attributes[order] = moved.attributes["perm"]
        return moved.inputs[0]

    def stored(self, name: str, *, turned: bool = False) -> str:
        """Return the stored form of a value; empty if it is not made of a cache by moving rows.

        Args:
            name: Name of the value.
            turned: Whether its last two axes are to be exchanged.
        """
        if (name, turned) not in self.known:
            self.known[name, turned] = self._found(name, turned=turned)
        return self.known[name, turned]

    def _found(self, name: str, *, turned: bool) -> str:
        maker = self.makers.get(name)
        if maker is None or self.graph.value(name).dtype not in (DType.FLOAT32, *HALVES):
            return ""
        if maker.domain == DOMAIN and not turned:
            return {APPEND: name, WIDEN: maker.inputs[0]}.get(maker.operator, "")
        if not _moves(maker):
            return ""
        source = self.stored(maker.inputs[0])
        if not source or (turned and maker.operator != "Transpose"):
            return ""
        return source if maker.operator == "Cast" else self._moved_by(maker, source, turned=turned)

    def _moved_by(self, maker: Node, source: str, *, turned: bool) -> str:
        """Return stored rows as a node moves widened ones; empty if it divides rows."""
        before, shape = (self.graph.value(n).static_shape for n in (maker.inputs[0], *maker.writes))
        if maker.operator != "Transpose":
            operator = "Expand" if maker.operator == "Expand" else "Reshape"
            is_whole = shape[-1:] == before[-1:]
            return self._moved(operator, source, shape, {}) if is_whole else ""
        order = tuple(range(len(shape)))
        perm = maker.attributes.get("perm", order[::-1])
        assert isinstance(perm, tuple)
        if turned:
            perm = (*perm[:-2], perm[-1], perm[-2])
        if perm == order or perm[-1] != order[-1]:
            return source if perm == order else ""
        target = tuple(before[int(str(axis))] for axis in perm)
        return self._moved("Transpose", source, target, {"perm": perm})

    def _moved(
        self,
        operator: str,
        source: str,
        shape: tuple[int, ...],
        attributes: Mapping[str, AttributeValue],
    ) -> str:
        """Add a node that moves stored rows; `shape` is that of widened ones."""
        value, name = self.value(source), self.names.new(f"{source}.{operator}")
        whole = (*shape[:-1], value.static_shape[-1])
        inputs: tuple[str, ...] = (source,)
        if operator != "Transpose":
            inputs = source, self.integers(self.names.new(f"{name}.shape"), whole)
        self.add(operator, inputs, self.declare(name, whole, value.dtype), attributes)
        self.moved[name] = self.nodes[-1]
        return name
