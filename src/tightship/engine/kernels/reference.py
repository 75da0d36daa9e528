"""Kernels of any operator by `onnx.reference`, which allocates its results."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.failure import KERNEL_ERRORS, failure
from tightship.engine.kernels.reference_texts import (
    hidden_operand,
    needs_hiding,
    shown_operand,
)
from tightship.errors import GraphError
from tightship.graph import DType, Node
from tightship.graph.layer import TRAINING

ReferenceRun = Callable[[Sequence[Any]], list[Any]]
"""Function that runs a node on operands: arrays, lists of arrays (sequences), None (left out, or an
empty optional). It returns the outputs in order, None for those left out."""

Types = Sequence[DType | None]
"""Types of a node's outputs, in order; None where unknown, left out or not a tensor."""

MakeRun = Callable[[Node, Types], ReferenceRun]
"""Function that makes a node ready to run on objects."""

Make = Callable[[Node, MakeRun], ReferenceRun]
"""Makes a node ready to run with those of its bodies; their captures follow its inputs."""

REFERENCE_ERRORS = (*KERNEL_ERRORS, AttributeError, ImportError, NameError, OSError, RuntimeError)
"""Exceptions of `onnx.reference` for operators, types or values that it cannot run."""


def reference_kernel(node: Node) -> ReferenceRun:
    """Make the node ready to run through `onnx.reference`.

    The operands of a run are the node's inputs, then the captures of each of its subgraphs, in the
    order of `node.subgraphs`.

    Raises:
        GraphError: `onnx.reference` has no such operator, or refuses its attributes; the returned
            function raises it too, for operands that it cannot work on. Operators of gradients run
            only in our own kernels, so they are refused.
    """
    if node.domain == TRAINING:
        raise GraphError(
            f"Node `{node.name}` ({node.domain} {node.operator}) has no kernel for operands of its "
            "types: training runs in float32, float64 and float16. Convert the model to one of "
            "these."
        )
    from onnx.reference import ReferenceEvaluator

    from tightship.engine.kernels.to_proto import model_of

    try:
        evaluator = ReferenceEvaluator(model_of(node))
    except REFERENCE_ERRORS as error:
        raise _failure(node, error) from error
    places = [node.outputs.index(name) for name in node.writes]
    is_hiding = needs_hiding(node)

    def run(operands: Sequence[Any]) -> list[Any]:
        if is_hiding:
            operands = hidden_operand(list(operands))
        feeds = {name: value for name, value in zip(node.operands, operands, strict=True) if name}
        try:
            with np.errstate(all="ignore"):
                results = evaluator.run(None, feeds)
        except REFERENCE_ERRORS as error:
            raise _failure(node, error) from error
        outputs: list[Any] = [None] * len(node.outputs)
        for place, result in zip(places, results, strict=True):
            outputs[place] = _as_operand(result)
        return shown_operand(outputs) if is_hiding else outputs

    return run


def _as_operand(result: Any) -> Any:  # noqa: ANN401  sequences and optionals are any object
    """Convert NumPy scalars to arrays, and strings to objects."""
    if isinstance(result, (np.ndarray, np.generic)):
        array = np.asarray(result)
        return array.astype(object) if array.dtype.kind in "US" else array
    return result


def _failure(node: Node, error: Exception) -> GraphError:
    return failure(node, "be run by `onnx.reference`", error)
