"""Runs nodes around large values in tiles, so that less memory lies between them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tightship.graph import Constant, DType, Graph, Inline, Node, Value
from tightship.graph.cut import CutNode, Run, is_update, runs_of
from tightship.graph.new_names import NewNames
from tightship.graph.operators import Category, row_of

MORE = 4
"""Ratio of a graph's nodes to those that tiles may add, two tiles being always allowed. Tiles of
gradients alone may add as many nodes as there are."""

_OPSET = 13


def in_tiles(
    graph: Graph, least_bytes: int, piece_bytes: int, *, only_updated: bool = False
) -> Graph:
    """Split large values into tiles, so that no node writes or reads them whole.

    Nodes around such a value run once for each tile and compute the same results: no sum is split.
    Tiles of other operands are slices, which are views if contiguous; results with other readers
    are concatenated. A weight's gradient in tiles updates it row by row: `start` is the first row,
    and each update is written over the one before.

    Args:
        graph: Typed graph.
        least_bytes: Size from which a value is split, if possible.
        piece_bytes: Size of a tile, unless that makes too many nodes.
        only_updated: Whether only gradients that an update consumes are split.
    """
    runs = [run for run in runs_of(graph, least_bytes) if run.largest_bytes > piece_bytes]
    if only_updated:
        nodes = graph.nodes
        runs = [run for run in runs if any(is_update(graph, nodes[i]) for i in run.nodes)]
    if not runs:
        return graph
    more = 1 if only_updated else MORE
    counts = [
        min(
            run.length,
            -(-run.largest_bytes // max(piece_bytes, 1)),
            max(2, len(graph.nodes) // (more * len(run.nodes) * len(runs))),
        )
        for run in runs
    ]
    return _Writer(graph, runs, counts).written()


def follows(update: Node) -> dict[str, str]:
    """Map each result of an update to the input that it overwrites."""
    found: dict[str, str] = {}
    signature = row_of(update).signature
    for output, source in signature.in_place if signature else ():
        found.setdefault(update.outputs[output], update.inputs[source])
    return found


class _Writer:
    """Writer of nodes; those of a run wait until a node outside reads their results."""

    def __init__(self, graph: Graph, runs: Sequence[Run], counts: Sequence[int]) -> None:
        self._given, self._runs, self._counts = graph, runs, counts
        self._run_of = {index: number for number, run in enumerate(runs) for index in run.nodes}
        self._cut = {name: index for index in self._run_of for name in graph.nodes[index].writes}
        self._whole = self._needed_whole()
        self._nodes: list[Node] = []
        self._values = dict(graph.values)
        self._constants: dict[str, Constant] = dict(graph.constants)
        self._waiting: list[list[int]] = [[] for _ in runs]
        self._updates = {self._run_of[i] for i in self._run_of if is_update(graph, graph.nodes[i])}
        self._made: dict[tuple[str, int, int, int], str] = {}
        self._latest: dict[str, str] = {}
        self._names = NewNames(graph)

    def written(self) -> Graph:
        """Return the graph with runs in tiles."""
        for index, node in enumerate(self._given.nodes):
            for name in node.reads:
                if name in self._cut and not self._is_piecewise(index, name):
                    self._flush(self._run_of[self._cut[name]])
            if row_of(node).category is Category.UPDATING:
                self._flush_all()
            if index not in self._run_of:
                self._nodes.append(node)
                continue
            self._waiting[self._run_of[index]].append(index)
            if self._run_of[index] in self._updates:
                self._flush(self._run_of[index])
        self._flush_all()
        return replace(
            self._given,
            nodes=tuple(self._nodes),
            values=self._values,
            constants=self._constants,
        )

    def _needed_whole(self) -> set[str]:
        """Find results of runs that are read whole."""
        found = set(self._given.outputs)
        for index, node in enumerate(self._given.nodes):
            found.update(name for name in node.reads if not self._is_piecewise(index, name))
        return found.intersection(self._cut)

    def _is_piecewise(self, index: int, name: str) -> bool:
        """Whether a node reads tiles of a value as they are written."""
        writer = self._cut.get(name)
        if writer is None or self._run_of.get(index) != self._run_of[writer]:
            return False
        cut = self._node(index)
        axes = [
            axis
            for each, axis in zip(self._given.nodes[index].inputs, cut.inputs, strict=True)
            if each == name
        ]
        return all(axis == self._node(writer).frame.axis for axis in axes)

    def _node(self, index: int) -> CutNode:
        return self._runs[self._run_of[index]].nodes[index]

    def _flush_all(self) -> None:
        for run in range(len(self._runs)):
            self._flush(run)

    def _flush(self, run: int) -> None:
        waiting, self._waiting[run] = self._waiting[run], []
        for place in range(self._counts[run]):
            for index in waiting:
                self._write(index, place)
        for index in waiting:
            node, axis = self._given.nodes[index], self._node(index).frame.axis
            for name in () if is_update(self._given, node) else node.writes:
                if name in self._whole:
                    places = range(self._counts[run])
                    parts = tuple([self._tile(name, axis, index, place) for place in places])
                    joined = Node(name, "Concat", parts, (name,), {"axis": axis}, "", _OPSET)
                    self._nodes.append(joined)

    def _write(self, index: int, place: int) -> None:
        node, cut = self._given.nodes[index], self._node(index)
        if is_update(self._given, node):
            self._write_update(index, place)
            return
        inputs = tuple([
            name if axis is None else self._operand(name, axis, index, place)
            for name, axis in zip(node.inputs, cut.inputs, strict=True)
        ])  # fmt: skip
        outputs = tuple(
            [name and self._tile(name, cut.frame.axis, index, place) for name in node.outputs]
        )
        name, attributes = f"{node.name}.tile{place}", node.attributes
        if node.operator == "GatherGrad":
            start, _ = self._range(index, place)
            length, shape = cut.frame.length, self._values[outputs[0]].static_shape
            attributes = {**attributes, "shape": shape, "start": start, "length": length}
        self._nodes.append(
            replace(node, name=name, inputs=inputs, outputs=outputs, attributes=attributes)
        )

    def _write_update(self, index: int, place: int) -> None:
        """Write an update of some rows, over the weight that the one before wrote."""
        node = self._given.nodes[index]
        over = follows(node)
        is_last = place == self._counts[self._run_of[index]] - 1
        outputs = [
            name if is_last else self._named(name, self._given.value(name), place)
            for name in node.outputs
        ]
        inputs = [self._latest.get(name, name) for name in node.inputs]
        inputs[1] = self._operand(node.inputs[1], 0, index, place)
        given = zip(node.outputs, outputs, strict=True)
        self._latest.update({over[before]: after for before, after in given})
        start, _ = self._range(index, place)
        self._nodes.append(
            replace(
                node,
                name=f"{node.name}.tile{place}",
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                attributes={**node.attributes, "start": start},
            )
        )

    def _operand(self, name: str, axis: int, index: int, place: int) -> str:
        """Return a tile of an operand: as it was written, or a slice."""
        is_new = (name, axis, *self._range(index, place)) not in self._made
        made = self._tile(name, axis, index, place)
        if is_new:
            inputs = (name, *self._numbers(*self._range(index, place), axis))
            self._nodes.append(Node(made, "Slice", inputs, (made,), {}, "", _OPSET))
        return made

    def _tile(self, name: str, axis: int, index: int, place: int) -> str:
        """Name a tile of a value, for the tiles of a node."""
        start, stop = self._range(index, place)
        key = (name, axis, start, stop)
        if key not in self._made:
            value = self._given.value(name)
            shape = list(value.static_shape)
            shape[axis] = stop - start
            self._made[key] = self._named(name, replace(value, shape=tuple(shape)), place)
        return self._made[key]

    def _range(self, index: int, place: int) -> tuple[int, int]:
        length, count = self._node(index).frame.length, self._counts[self._run_of[index]]
        return place * length // count, (place + 1) * length // count

    def _numbers(self, *numbers: int) -> Iterator[str]:
        for number in numbers:
            name = f"tile {number} int64"
            self._constants[name] = Inline(np.array([number], np.int64))
            self._values[name] = Value(name, DType.INT64, (1,))
            yield name

    def _named(self, name: str, value: Value, place: int) -> str:
        made = self._names.new(f"{name}.tile{place}")
        self._values[made] = replace(value, name=made)
        return made
