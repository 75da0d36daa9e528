"""One operand of a node at a time with another length or rank: refused by name, or run.

    python -m tests.frontend.misfits quick|whole PART PARTS

Takes each PARTS-th operator of ONNX's node suite, from PART on. Prints as JSON the number of
trials, the operators whose operands were refused when the model was read, and what went wrong:
errors that are not Tightship's or do not name the node. A crash ends the process.
"""

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tightship
from tests.engine.kernels.node_suite import Case, cases
from tightship.engine.kernels.to_proto import node_to_proto
from tightship.errors import TightshipError

ELEMENTS_MAX = 200_000
ALLOW_ZERO = 14
"""The opset from which on a Reshape may have lengths of 0."""
FIRST_HIDING = 5
"""The opset from which on a Reshape takes its shape as an input."""
CONTROL = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators whose bodies have nodes of their own, which errors name."""


@dataclass(slots=True)
class Found:
    """Results of the trials of some operators."""

    trials: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def chosen(*, whole: bool) -> dict[str, list[Case]]:
    """Return cases by operator: of each, those that differ in ranks, attributes and kind."""
    by_operator: dict[str, dict[Any, Case]] = {}
    for case in cases():
        given = [array for array in case.inputs if array is not None]
        is_plain = case.is_numeric and all(isinstance(each, np.ndarray) for each in given)
        if case.node.domain or not is_plain or not given:
            continue
        if sum(array.size for array in given) > ELEMENTS_MAX:
            continue
        is_float = given[0].dtype == np.float32
        ranks = tuple(None if array is None else array.ndim for array in case.inputs)
        key = (not is_float, -len(given), str(ranks), tuple(sorted(case.node.attributes)))
        by_operator.setdefault(case.node.operator, {}).setdefault(key, case)
    count = 4 if whole else 1
    return {
        operator: [found[key] for key in sorted(found)[:count]]
        for operator, found in sorted(by_operator.items())
    }


def shapes_beside(shape: tuple[int, ...], *, whole: bool) -> Iterator[tuple[int, ...]]:
    """Yield shapes with one length, or the rank, changed by one."""
    for axis, length in enumerate(shape):
        for by in (1, -1) if whole else (1,):
            if length + by >= 0:
                yield (*shape[:axis], length + by, *shape[axis + 1 :])
    yield (*shape, 2)
    if shape and whole:
        yield shape[:-1]
        yield shape[1:]


def model_of(
    case: Case, arrays: Sequence[Any], mode: str
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return a model of a node with these operands, and what to feed it.

    Operands are inputs (`plain`), all but the first constants (`constant`), inputs of lengths that
    are left open (`open`), or of shapes that only the run knows (`hidden`).
    """
    node, feeds, inputs, weights, nodes = node_to_proto(case.node), {}, [], [], []
    node.name = "the_node"
    for name, array in dict(zip(case.node.inputs, arrays, strict=True)).items():
        if array is None:
            continue
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        if mode == "constant" and name != case.node.inputs[0]:
            weights.append(numpy_helper.from_array(array, name))
            continue
        outside = f"{name}_in" if mode == "hidden" else name
        lengths = (
            [f"{name}.{axis}" for axis in range(array.ndim)] if mode == "open" else array.shape
        )
        inputs.append(helper.make_tensor_value_info(outside, kind, lengths))
        feeds[outside] = array
        if mode == "hidden":
            zero = {"allowzero": 1} if case.node.version >= ALLOW_ZERO else {}
            to = helper.make_tensor_value_info(f"{name}_to", TensorProto.INT64, [array.ndim])
            inputs.append(to)
            feeds[f"{name}_to"] = np.array(array.shape, np.int64)
            nodes.append(helper.make_node("Reshape", [outside, f"{name}_to"], [name], **zero))
    outputs = [onnx.ValueInfoProto(name=name) for name in case.node.outputs if name]
    graph = helper.make_graph([*nodes, node], "g", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", case.node.version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def outcome(case: Case, arrays: Sequence[Any], mode: str) -> str | dict[str, Any]:
    """Return the shapes of a node's outputs, or the text of Tightship's error."""
    model, feeds = model_of(case, arrays, mode)
    shapes, runs = None, [feeds]
    if mode == "open":
        fitting = model_of(case, case.inputs, mode)[1]
        shapes, runs = {name: array.shape for name, array in fitting.items()}, [fitting, feeds]
    try:
        with tightship.load(model.SerializeToString(), shapes=shapes) as loaded:
            for each in runs:
                outputs = loaded.run(each)
            return {name: np.shape(array) for name, array in outputs.items()}
    except TightshipError as error:
        return str(error)


def try_one(found: Found, case: Case, place: int, shape: tuple[int, ...], mode: str) -> None:
    """Read and run a node whose operand at a place has another shape."""
    changed = case.inputs[place]
    if not changed.size:
        changed = np.zeros(1, changed.dtype)
    elements = np.resize(changed.reshape(-1), prod(shape)).astype(changed.dtype)
    arrays = list(case.inputs)
    for each, name in enumerate(case.node.inputs):
        if name == case.node.inputs[place]:
            arrays[each] = elements.reshape(shape)
    found.trials += 1
    where = f"{case.name}, input {place} of shape {shape}, {mode}"
    try:
        came = outcome(case, arrays, mode)
        fixed = outcome(case, arrays, "plain") if mode == "open" else came
    except Exception as error:  # noqa: BLE001  any but Tightship's own is what is looked for
        found.wrong.append(f"{where}: {type(error).__name__}: {error}")
        return
    if came != fixed and not (isinstance(came, str) and isinstance(fixed, str)):
        found.wrong.append(f"{where}: {came}, but {fixed} where lengths are fixed")
    if isinstance(came, str):
        if "cannot be typed" in came:
            found.refused[case.node.operator] = found.refused.get(case.node.operator, 0) + 1
        if "`the_node`" not in came and case.node.operator not in CONTROL:
            found.wrong.append(f"{where}: {came}")


def ways(case: Case, place: int, *, whole: bool) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield other shapes of an operand, and the ways to give them."""
    before = case.inputs[place].shape
    for shape in shapes_beside(before, whole=whole):
        yield shape, "plain"
        if whole and len(shape) == len(before):
            yield shape, "open"
        if whole:
            yield shape, "constant"
        if whole and case.node.version >= FIRST_HIDING:
            yield shape, "hidden"


def main(part: int, parts: int, *, whole: bool) -> None:
    """Try the operators of a part; print what was found."""
    warnings.simplefilter("ignore")
    found = Found()
    for _, some in [*chosen(whole=whole).items()][part::parts]:
        for case in some:
            for place, array in enumerate(case.inputs):
                for shape, mode in () if array is None else ways(case, place, whole=whole):
                    try_one(found, case, place, shape, mode)
    sys.stdout.write(json.dumps([found.trials, found.refused, found.wrong]))


if __name__ == "__main__":
    main(int(sys.argv[2]), int(sys.argv[3]), whole=sys.argv[1] == "whole")
