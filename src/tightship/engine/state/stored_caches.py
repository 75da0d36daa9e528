"""Caches of another type than the file's: rows are rounded as they are appended.

    in the file's graph                  rewritten
    TensorScatter(past, new, starts)     AppendRows(past, new, starts), in the bytes of the cache
    readers of its result                readers of WidenRows(its result)

`past` and the result then have the cache's type. A pass gives stored rows to attention, whose
kernel widens them block by block, and refuses other readers, so that no cache is ever widened as a
whole. Rows of int8 have a scale, a float32, in the four elements behind their own.

A cache that is float16 or bfloat16 in the file is appended to in the same way where it can be, but
keeps its readers; those that are not attention then have it widened as other halves.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tightship.engine.state.cache_types import HALVES
from tightship.errors import GraphError
from tightship.graph import DType, Graph, Node, Value
from tightship.graph.new_names import NewNames, renamed_node

if TYPE_CHECKING:
    from tightship.engine.state.decoder import Cache

DOMAIN, APPEND, WIDEN = "tightship", "AppendRows", "WidenRows"


def store_caches(graph: Graph, caches: Sequence["Cache"]) -> Graph:
    """Return a graph of `with_capacity` whose caches have the types that are stored.

    Raises:
        GraphError: A cache of another type than the file's is used otherwise than by appending to
            it and reading the result.
    """
    rewriter = _Rewriter(graph, NewNames(graph))
    for cache in caches:
        if cache.stored is not None:
            rewriter.store(cache)
        elif cache.dtype in HALVES:
            with suppress(GraphError):
                rewriter.store(cache)
    return replace(graph, nodes=tuple(rewriter.nodes), values=rewriter.values)


@dataclass(slots=True)
class _Rewriter:
    graph: Graph
    names: NewNames
    nodes: list[Node] = field(init=False)
    values: dict[str, Value] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes, self.values = list(self.graph.nodes), dict(self.graph.values)

    def store(self, cache: "Cache") -> None:
        """Store one cache in its type.

        Raises:
            GraphError: It is not appended to, or read otherwise too.
        """
        past, present = cache.pair.past, cache.pair.present
        before, after = self._same(past), self._before(present)
        place = next((i for i, node in enumerate(self.nodes) if after[0] in node.outputs), -1)
        append = self.nodes[place] if place >= 0 else None
        if append is None or append.operator != "TensorScatter" or append.inputs[0] not in before:
            maker = "no node" if append is None else f"`{append.name}` ({append.operator})"
            raise self._refusal(cache, f"{maker} makes `{present}`, not an append to `{past}`")
        others = [n for n in self.nodes if n is not append and before.intersection(n.reads)
                  and not (n.operator == "Identity" and before.issuperset(n.outputs))]  # fmt: skip
        if others:
            what = f"`{others[0].name}` ({others[0].operator}) reads `{past}` before it is appended"
            raise self._refusal(cache, f"{what} to")
        dtype = self.values[present].dtype
        wide = present if cache.stored is None else self.names.new(f"{present}.wide")
        dropped = {append.name, *self._identities(before), *self._identities({*after})}
        renamed = dict.fromkeys(after, wide)
        written = self._append(cache, append, dtype)
        if cache.stored is not None:
            for name in (past, present):
                self.values[name] = Value(name, cache.dtype, cache.shape)
            written += self._widen(cache, wide, dtype)
        kept = [renamed_node(n, renamed) for n in self.nodes[place + 1 :] if n.name not in dropped]
        before_it = [n for n in self.nodes[:place] if n.name not in dropped]
        self.nodes = [*before_it, *written, *kept]

    def _append(self, cache: "Cache", append: Node, dtype: DType | None) -> list[Node]:
        """Write the append, of float32 rows."""
        new, nodes = append.inputs[1], []
        if dtype is not DType.FLOAT32:
            new = self._new(f"{new}.appended", DType.FLOAT32, self.values[new].static_shape)
            nodes.append(Node(new, "Cast", append.inputs[1:2], (new,), {"to": 1}, version=13))
        inputs = (cache.pair.past, new, *append.inputs[2:])
        axis = {"axis": cache.pair.axis}
        return [*nodes, Node(append.name, APPEND, inputs, (cache.pair.present,), axis, DOMAIN)]

    def _widen(self, cache: "Cache", wide: str, dtype: DType | None) -> list[Node]:
        """Write float32 rows for all readers, rounded to the file's type if that is narrower."""
        shape, source = cache.file_shape, cache.pair.present
        name = wide if dtype is DType.FLOAT32 else self.names.new(f"{wide}.floats")
        self.values[name] = Value(name, DType.FLOAT32, shape)
        nodes = [Node(name, WIDEN, (source,), (name,), {}, DOMAIN)]
        if name != wide:
            self.values[wide] = Value(wide, dtype, shape)
            assert dtype is not None
            to = {"to": HALVES[dtype]}
            nodes.append(Node(wide, "Cast", (name,), (wide,), to, version=13))
        return nodes

    def _new(self, wanted: str, dtype: DType, shape: tuple[int, ...]) -> str:
        name = self.names.new(wanted)
        self.values[name] = Value(name, dtype, shape)
        return name

    def _same(self, name: str) -> set[str]:
        """Return a value and those that are equal to it by Identity."""
        found = {name}
        for node in self.nodes:
            if node.operator == "Identity" and node.inputs[0] in found:
                found.update(node.outputs)
        return found

    def _before(self, name: str) -> list[str]:
        """Return the values that `name` is equal to by Identity, the first of all at the start."""
        makers = {output: node for node in self.nodes for output in node.outputs}
        found = [name]
        while (maker := makers.get(found[0])) is not None and maker.operator == "Identity":
            found.insert(0, maker.inputs[0])
        return found

    def _identities(self, names: set[str]) -> list[str]:
        return [n.name for n in self.nodes if n.operator == "Identity" and n.outputs[0] in names]

    def _refusal(self, cache: "Cache", what: str) -> GraphError:
        return GraphError(
            f"The cache `{cache.pair.past}` cannot be stored as {cache.stored}: {what}. Give the "
            'model\'s type, `cache="float32"` for most.'
        )
