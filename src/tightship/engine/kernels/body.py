"""Runs a subgraph node by node on arrays that it allocates."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightship.engine.interruption import check_interruption
from tightship.engine.kernels.failure import KERNEL_ERRORS, failure
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.engine.kernels.select import RUN, bare_kernel
from tightship.errors import TightshipError
from tightship.graph import DType, Graph, Node, Value


@dataclass(frozen=True, slots=True)
class _Step:
    """Node with names of its operands, `""` where left out, and values that are last used here."""

    node: Node
    run: ReferenceRun
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    frees: tuple[str, ...]


class Body:
    """Graph made ready to run many times.

    A node of known types runs in a NumPy kernel, any other in what `make_run` makes. Values are
    dropped after their last reader.
    """

    def __init__(self, graph: Graph, make_run: MakeRun) -> None:
        self.graph = graph
        nodes = [n for n in graph.nodes if not all(name in graph.known for name in n.writes)]
        last = {name: index for index, node in enumerate(nodes) for name in node.reads}
        written = {name for node in nodes for name in node.writes}
        kept = set(graph.outputs)
        self._steps = tuple(
            _Step(
                node,
                _ready(graph, node, make_run),
                node.operands,
                node.outputs,
                tuple(
                    name
                    for name in {*node.reads, *node.writes}
                    if name in written and name not in kept and last.get(name, index) == index
                ),
            )
            for index, node in enumerate(nodes)
        )

    def surroundings(self, captured: Mapping[str, Any]) -> dict[str, Any]:
        """Collect what every run reads besides its inputs: captures and constants."""
        constants = {**self.graph.known, **self.graph.constants}
        own = {name: captured[name] for name in self.graph.captures}
        return own | {name: constant.array() for name, constant in constants.items()}

    def run(self, inputs: Sequence[Any], surroundings: Mapping[str, Any]) -> list[Any]:
        """Compute the outputs for these inputs, both in the graph's order.

        Raises:
            GraphError: A node cannot be run on its operands.
            StoppedError, DeadlineError: The run that this is part of must end.
        """
        check_interruption()
        values = {**surroundings, **dict(zip(self.graph.inputs, inputs, strict=True))}
        with np.errstate(all="ignore"):
            for step in self._steps:
                try:
                    results = step.run([values[name] if name else None for name in step.reads])
                except TightshipError:
                    raise
                except KERNEL_ERRORS as error:
                    raise failure(step.node, RUN, error) from error
                values.update(zip(step.writes, results, strict=True))
                for name in step.frees:
                    del values[name]
        return [values[name] for name in self.graph.outputs]


def _ready(graph: Graph, node: Node, make_run: MakeRun) -> ReferenceRun:
    inputs = [graph.value(name) if name else None for name in node.inputs]
    outputs = [graph.value(name) if name else None for name in node.outputs]
    kernel = bare_kernel(node, inputs, outputs, ChainMap(dict(graph.constants), dict(graph.known)))
    if kernel is None:
        return make_run(node, _types(outputs))
    run, scratch_bytes = kernel.run, kernel.scratch_bytes
    wanted, rooms = [_type(value) for value in inputs], [_type(value) for value in outputs]
    fallback: list[ReferenceRun] = []

    def typed(operands: Sequence[Any]) -> list[Any]:
        dense = []
        for operand, type_ in zip(operands, wanted, strict=True):
            if operand is None or type_ is None:
                fits = operand is type_
            else:
                fits = operand.shape == type_[0] and operand.dtype == type_[1]
            if not fits:
                if not fallback:
                    fallback.append(make_run(node, _types(outputs)))
                return fallback[0](operands)
            if operand is None or operand.flags.c_contiguous:
                dense.append(operand)
            else:
                dense.append(np.ascontiguousarray(operand))
        results = [None if type_ is None else np.empty(*type_) for type_ in rooms]
        run(dense, results, np.empty(scratch_bytes, np.uint8) if scratch_bytes else None)
        return results

    return typed


def _types(values: Sequence[Value | None]) -> list[DType | None]:
    return [None if value is None else value.dtype for value in values]


def _type(value: Value | None) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Return shape and dtype of the arrays of a value."""
    if value is None:
        return None
    assert value.dtype is not None
    return value.static_shape, value.dtype.numpy
