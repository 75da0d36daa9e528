"""Operators that run graphs: If, Loop, Scan and SequenceMap."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.body import Body
from tightship.engine.kernels.kernel import Array
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.errors import GraphError
from tightship.graph import Graph, Node

_BATCHED_SCAN_VERSION = 8
"""Opset whose Scan has a batch axis, and lengths as its first input."""

Captured = Mapping[str, Any]


def _body(node: Node, attribute: str, make_run: MakeRun) -> Body:
    graph = node.attributes.get(attribute)
    if not isinstance(graph, Graph):
        raise GraphError(f"Node `{node.name}` has no graph in its attribute `{attribute}`.")
    return Body(graph, make_run)


def _split(node: Node, operands: Sequence[Any]) -> tuple[list[Any], Captured]:
    """Split operands into inputs, and captures by name."""
    names = [name for graph in node.subgraphs for name in graph.captures]
    count = len(node.inputs)
    return list(operands[:count]), dict(zip(names, operands[count:], strict=True))


def if_kernel(node: Node, make_run: MakeRun) -> ReferenceRun:
    branches = [_body(node, name, make_run) for name in ("else_branch", "then_branch")]

    def run(operands: Sequence[Any]) -> list[Any]:
        (condition,), captured = _split(node, operands)
        branch = branches[_truth(node, condition)]
        return _given(node, branch.run((), branch.surroundings(captured)))

    return run


def loop(node: Node, make_run: MakeRun) -> ReferenceRun:
    body = _body(node, "body", make_run)
    state_count = len(node.inputs) - 2

    def run(operands: Sequence[Any]) -> list[Any]:
        (trips, condition, *state), captured = _split(node, operands)
        goes_on = condition is None or _truth(node, condition)
        obeys = condition is not None or trips is None
        surroundings = body.surroundings(captured)
        scanned: list[list[Array]] = [[] for _ in body.graph.outputs[1 + state_count :]]
        iteration = 0
        while goes_on and (trips is None or iteration < trips.item()):
            inputs = (np.array(iteration, np.int64), np.array(goes_on), *state)
            condition, *results = body.run(inputs, surroundings)
            state, elements = results[:state_count], results[state_count:]
            for collected, element in zip(scanned, elements, strict=True):
                collected.append(element)
            goes_on = not obeys or _truth(node, condition)
            iteration += 1
        names = body.graph.outputs[1 + state_count :]
        stacked = [
            _stacked(body.graph, name, collected, 0)
            for name, collected in zip(names, scanned, strict=True)
        ]
        return _given(node, state + stacked)

    return run


def scan(node: Node, make_run: MakeRun) -> ReferenceRun:
    body = _body(node, "body", make_run)
    once = _scan_once(node, body)
    if node.version > _BATCHED_SCAN_VERSION:

        def run(operands: Sequence[Any]) -> list[Any]:
            inputs, captured = _split(node, operands)
            return _given(node, once(inputs, body.surroundings(captured)))

        return run

    def run_batch(operands: Sequence[Any]) -> list[Any]:
        (lengths, *inputs), captured = _split(node, operands)
        surroundings = body.surroundings(captured)
        rows = []
        for index in range(len(inputs[0])):
            row = [array[index] for array in inputs]
            whole = row[-1].shape[0]
            length = whole if lengths is None else int(lengths[index])
            rows.append(once(row, surroundings, length, whole))
        if not rows:
            raise GraphError(
                f"Node `{node.name}` (Scan) has an empty batch, of which no output follows; give "
                "its inputs a first dimension of at least 1."
            )
        return _given(node, [np.stack(arrays) for arrays in zip(*rows, strict=True)])

    return run_batch


def _scan_once(node: Node, body: Body) -> Callable[..., list[Any]]:
    scan_count = node.integer("num_scan_inputs")
    is_batched = node.version <= _BATCHED_SCAN_VERSION
    state_count = len(node.inputs) - is_batched - scan_count
    names = body.graph.outputs[state_count:]
    backward = _integers(node, "directions" if is_batched else "scan_input_directions", scan_count)
    in_axes = _integers(node, "scan_input_axes", scan_count)
    out_axes = _integers(node, "scan_output_axes", len(names))
    out_backward = _integers(node, "scan_output_directions", len(names))

    def once(
        inputs: list[Any], surroundings: Captured, length: int | None = None, padded: int = 0
    ) -> list[Any]:
        state, scans = inputs[:state_count], inputs[state_count:]
        scans = [np.moveaxis(a, axis, 0)[:length] for a, axis in zip(scans, in_axes, strict=True)]
        lengths = [len(each) for each in scans]
        if len(set(lengths)) > 1:
            raise GraphError(
                f"Node `{node.name}` (Scan) has scan inputs of {lengths} elements; there must be "
                "equally many."
            )
        scans = [a[::-1] if back else a for a, back in zip(scans, backward, strict=True)]
        scanned: list[list[Array]] = [[] for _ in names]
        for slices in zip(*scans, strict=True):
            results = body.run((*state, *slices), surroundings)
            state = results[:state_count]
            for collected, element in zip(scanned, results[state_count:], strict=True):
                collected.append(element)
        stacked = []
        for index, (name, collected) in enumerate(zip(names, scanned, strict=True)):
            ordered = collected[::-1] if out_backward[index] else collected
            array = _stacked(body.graph, name, ordered, out_axes[index])
            missing = padded - len(ordered)
            if missing > 0:
                array = np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))
            stacked.append(array)
        return state + stacked

    return once


def sequence_map(node: Node, make_run: MakeRun) -> ReferenceRun:
    body = _body(node, "body", make_run)

    def run(operands: Sequence[Any]) -> list[Any]:
        inputs, captured = _split(node, operands)
        surroundings = body.surroundings(captured)
        rows = [
            body.run([i[iteration] if isinstance(i, list) else i for i in inputs], surroundings)
            for iteration in range(len(inputs[0]))
        ]
        columns = [list(column) for column in zip(*rows, strict=True)]
        return _given(node, columns or [[] for _ in body.graph.outputs])

    return run


def _stacked(graph: Graph, name: str, elements: Sequence[Array], axis: int) -> Array:
    """Stack elements along a new axis; without any, use the graph's shape as far as known."""
    shapes = {element.shape for element in elements}
    if len(shapes) > 1:
        raise GraphError(
            f"Graph `{graph.name}` gives `{name}` the shapes "
            f"{' and '.join(str(list(shape)) for shape in sorted(shapes)[:2])} in different "
            "iterations; they must be the same to be stacked."
        )
    if elements:
        return np.stack(elements, axis)
    value = graph.value(name)
    shape = [d if isinstance(d, int) else 0 for d in value.shape or ()]
    dtype = np.dtype(np.float32) if value.dtype is None else value.dtype.numpy
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 0)
    return np.empty(shape, dtype)


def _truth(node: Node, condition: Array) -> bool:
    if condition.size != 1:
        raise GraphError(
            f"The condition of node `{node.name}` ({node.operator}) has {condition.size} elements; "
            "it must have one."
        )
    return bool(condition.item())


def _given(node: Node, results: Sequence[Any]) -> list[Any]:
    """Return a result for each output, None for outputs left out."""
    return [r if name else None for name, r in zip(node.outputs, results, strict=False)]


def _integers(node: Node, name: str, count: int) -> tuple[int, ...]:
    values = node.attributes.get(name, (0,) * count)
    if not isinstance(values, tuple) or len(values) != count:
        raise GraphError(f"Node `{node.name}` has {name}={values!r}; {count} are needed.")
    return tuple(int(value) for value in values)
