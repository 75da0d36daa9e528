"""Numbers of rows that a graph counts in its mask."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

import tightship
from tests.decoders import FLOAT, INT32, INT64, Size, Writer
from tests.engine.state.loops import FixedCaches, GrowingCaches, decoder
from tests.zoo import decoder as zoo

CONTEXT = 24
Build = Callable[[Writer, str], str]
SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1,
         "total_sequence_length": 2}  # fmt: skip


def model_of(build: Build) -> bytes:
    """A model with one cache, whose result is computed from its mask."""
    w = Writer(Size(layers=1, heads=2, length=4))
    ids = w.input("input_ids", INT64, 1, "sequence_length")
    mask = w.input("attention_mask", INT64, 1, "total_sequence_length")
    (past, _) = w.cache(0, 2, 1)
    new = w.heads(w("Gather", w.weight(50, 8), ids), 2)
    rows = w("Concat", past, new, axis=2)
    found = w("Identity", build(w, mask))
    w.called("present.0.key", rows)
    w.output("present.0.key", FLOAT, 1, 2, "total", 4)
    w.called("logits", found)
    w.outputs.append(onnx.ValueInfoProto(name="logits"))
    del w.inputs[3]  # the cache of values, which nothing reads
    return w.finished()


def operators_of(build: Build, steps: int = 1) -> list[str]:
    graph = decoder(model_of(build), CONTEXT).graph(steps, last=False)
    return [node.operator for node in graph.nodes]


def last_of(w: Writer, mask: str) -> str:
    """Index of the last row, as GroupQueryAttention's `seqlens_k`."""
    total = w("ReduceSum", mask, w.constant([1]), keepdims=0)
    return w("Cast", w("Sub", total, w.constant([1])), to=INT32)


@pytest.mark.parametrize(
    "build",
    [
        last_of,
        lambda w, m: w("Max", w("Add", w.constant(5), last_of64(w, m)), w.constant([3])),
        lambda w, m: w("Unsqueeze", w("Squeeze", last_of(w, m)), w.constant([0, 1])),
        lambda w, m: w("ReduceSum", w("Cast", m, to=INT32), w.constant([-1])),
    ],
)
def test_counts_are_the_past_length_plus_a_number(build: Build) -> None:
    assert not {"ReduceSum", "Sub", "Max"} & set(operators_of(build))
    assert_same(build)


def last_of64(w: Writer, mask: str) -> str:
    return w("Sub", w("ReduceSum", mask, w.constant([1])), w.constant([3]))


@pytest.mark.parametrize(
    ("build", "kept"),
    [
        (lambda w, m: w("Max", last_of64(w, m), w.constant([0])), "Max"),
        (lambda w, m: w("Sub", w.constant([9]), last_of64(w, m)), "Sub"),
        (lambda w, m: w("Add", last_of64(w, m), w.constant([1, 2])), "Add"),
        (lambda w, m: w("ReduceSum", m), "ReduceSum"),
        (lambda w, m: w("ReduceSum", w("Mul", m, w.constant(2)), w.constant([1])), "ReduceSum"),
    ],
)
def test_other_sums_are_computed(build: Build, kept: str) -> None:
    """A maximum that some past lengths change, and sums that are no such count, stay."""
    assert kept in operators_of(build, 2)
    assert_same(build)


def assert_same(build: Build) -> None:
    data = model_of(build)
    ours, theirs = FixedCaches(data, CONTEXT), GrowingCaches(data)
    for ids in ([3], [1, 4], [5], [9, 2]):
        np.testing.assert_array_equal(ours.step(ids), theirs.step(ids))


@pytest.mark.parametrize("steps", [1, 4])
def test_grouped_attention_over_such_lengths_has_no_mask(steps: int) -> None:
    case = zoo.decoder(zoo.SMALL, past=3)
    with tightship.load(case.model, shapes=SIZES) as model:
        session = model.session(CONTEXT)
        theirs = GrowingCaches(case.model)
        for ids in (list(range(steps)), [7], [8, 9]):
            found, wanted = session.step(ids), theirs.step(ids)
            np.testing.assert_allclose(found[:, -1], wanted[:, -1], rtol=2e-4, atol=2e-5)
        lowered = session._programs.program(steps).first_lowered
    attentions = [step for step in lowered.steps if step.operator == "Attention"]
    assert len(attentions) == zoo.SMALL.layers
    assert {step.implementation for step in attentions} == {"attention"}
    assert all(len(step.reads) == 4 for step in attentions), "the number of keys in use, no mask"
    operators = {step.operator for step in lowered.steps}
    assert not operators & {"And", "Less", "LessOrEqual", "ReduceSum"}


@pytest.mark.parametrize("batch", [1, 2])
def test_windows_over_such_lengths(batch: int) -> None:
    """Queries of grouped attention see their own key and those just before it."""
    model = onnx.load_model_from_string(zoo.decoder(zoo.SMALL, past=3).model)
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(onnx.helper.make_attribute("local_window_size", 5))
    data = model.SerializeToString()
    with tightship.load(data, shapes=SIZES) as loaded:
        session = loaded.session(CONTEXT, batch=batch)
        theirs = GrowingCaches(data, batch)
        for ids in ([3, 1, 4, 1], [5], [9], [2], [6], [5], [3]):
            found, wanted = session.step([ids] * batch), theirs.step(ids)
            np.testing.assert_allclose(found[:, -1], wanted[:, -1], rtol=2e-4, atol=2e-5)
        lowered = session._programs.program(1).first_lowered
    assert all(len(step.reads) == 4 for step in lowered.steps if step.operator == "Attention")
