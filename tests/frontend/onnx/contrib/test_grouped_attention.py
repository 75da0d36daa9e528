"""GroupQueryAttention: prompts and tokens after them, rows of different lengths."""

from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import tightship
from tests.frontend.onnx.contrib.case import Case, assert_as_onnxruntime, normal, run

HEADS, SHARED, LENGTH = 6, 2, 16


def case(steps: int, lengths: list[int], past: int, **attributes: Any) -> Case:
    """Rows of `lengths` tokens, the new ones among them, in room for `past` and the new ones."""
    batch, packed = len(lengths), attributes.pop("packed", False)
    bias = attributes.pop("bias", False)
    angles = np.outer(np.arange(20), 1 / 2 ** np.arange(LENGTH // 2)).astype(np.float32)
    wide = (HEADS + 2 * SHARED if packed else HEADS) * LENGTH
    rotates = bool(attributes.get("do_rotary"))
    inputs = {
        "q": normal(batch, steps, wide),
        "k": None if packed else normal(batch, steps, SHARED * LENGTH),
        "v": None if packed else normal(batch, steps, SHARED * LENGTH),
        "past_key": normal(batch, SHARED, past, LENGTH),
        "past_value": normal(batch, SHARED, past, LENGTH),
        "lengths": np.array(lengths, np.int32) - 1,
        "total": np.array([max(lengths)], np.int32),
        "c": np.cos(angles) if rotates else None, "s": np.sin(angles) if rotates else None,
        "places": None,
        "bias": normal(batch, 1, steps, past + steps) if bias else None,
    }  # fmt: skip
    given = {"num_heads": HEADS, "kv_num_heads": SHARED, **attributes}
    outputs = ("y", "present_key", "present_value")
    return Case("GroupQueryAttention", inputs, given, outputs)


OPTIONS = [
    {}, {"packed": True}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1},
    {"scale": 0.2}, {"local_window_size": 3}, {"softcap": 2.0}, {"bias": True},
    {"packed": True, "do_rotary": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_prompt(options: dict[str, Any]) -> None:
    assert_as_onnxruntime(case(7, [7, 7], 0, **options))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_token_after_a_past(options: dict[str, Any]) -> None:
    assert_as_onnxruntime(case(1, [6, 6], 5, **options))


def test_several_tokens_after_a_past() -> None:
    assert_as_onnxruntime(case(3, [8], 5, do_rotary=1))


@pytest.mark.parametrize(("steps", "lengths", "past"), [(1, [3, 6], 5), (7, [4, 7], 0)])
@pytest.mark.parametrize("options", [{}, {"do_rotary": 1}, {"local_window_size": 2}], ids=str)
def test_rows_of_different_lengths(
    steps: int, lengths: list[int], past: int, options: dict[str, Any]
) -> None:
    given = case(steps, lengths, past, **options)
    wanted = onnxruntime.InferenceSession(given.model).run(list(given.outputs), given.feeds)
    found = run(given)
    for row, length in enumerate(lengths):
        tokens = min(steps, length)
        near = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
        near(found["y"][row, :tokens], wanted[0][row, :tokens])
        near(found["present_key"][row, :, :length], wanted[1][row, :, :length])
        near(found["present_value"][row, :, :length], wanted[2][row, :, :length])


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(("steps", "total"), [(5, 5), (1, 6), (1, 9), (3, 9)])
def test_a_cache_with_room_for_all_tokens_keeps_its_length(
    steps: int, total: int, *, declared: bool
) -> None:
    model, feeds = exported(steps, total, 9, declared=declared)
    names = ["y", "present_key", "present_value"]
    wanted = onnxruntime.InferenceSession(model).run(names, feeds)
    shapes = {} if declared else {"mask": (1, total)}
    with tightship.load(model, shapes=shapes) as loaded:
        found = loaded.run(feeds)
        assert all(step.dynamic_reason is None for step in loaded.plan.steps)
    near = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    near(found["y"], wanted[0])
    for name, want in zip(names[1:], wanted[1:], strict=True):
        assert found[name].shape == want.shape == (1, SHARED, 9, LENGTH)
        near(found[name][:, :, :total], want[:, :, :total])


def exported(steps: int, total: int, room: int, *, declared: bool) -> tuple[bytes, dict[str, Any]]:
    """Build a model as GenAI exports it: lengths from a mask, caches for the longest text.

    Or the number of tokens in all is an input, and the file declares that caches keep their length.
    """
    given = case(steps, [total], room, do_rotary=1)
    model, feeds = onnx.load_from_string(given.model), given.feeds
    graph = model.graph
    for output in graph.output[1:]:
        output.CopyFrom(helper.make_tensor_value_info(output.name, 1, [1, SHARED, room, LENGTH]))
    if declared:
        return model.SerializeToString(), feeds
    for name in ("lengths", "total"):
        graph.input.remove(next(value for value in graph.input if value.name == name))
        del feeds[name]
    feeds["mask"] = np.ones((1, total), np.int64)
    graph.input.append(helper.make_tensor_value_info("mask", 7, [1, "total_length"]))
    for name in [value.name for value in graph.output[1:]]:
        graph.output.remove(next(value for value in graph.output if value.name == name))
        graph.output.append(onnx.ValueInfoProto(name=name))
    for index, (operator, *operands) in enumerate(MASKED):
        *inputs, output, attributes = operands
        graph.node.insert(index, helper.make_node(operator, inputs, [output], **attributes))
    for name, value in (("one", 1), ("axis", 1)):
        graph.initializer.append(numpy_helper.from_array(np.array([value]), name))
    return model.SerializeToString(), feeds


MASKED: list[tuple[Any, ...]] = [
    ("ReduceSum", "mask", "axis", "sums", {"keepdims": 0}),
    ("Sub", "sums", "one", "last", {}),
    ("Cast", "last", "lengths", {"to": 6}),
    ("Shape", "mask", "sizes", {}),
    ("Gather", "sizes", "one", "wide", {}),
    ("Cast", "wide", "total", {"to": 6}),
]
"""Nodes that compute from a mask the tokens of each row, less one, and the total."""
