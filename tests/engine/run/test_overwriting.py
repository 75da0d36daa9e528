"""Outputs written over inputs: caches that are appended to, and what is refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tightship
from tests import decoders
from tests.small_models import model

FLOAT = TensorProto.FLOAT


def appending(*more, outputs=()) -> bytes:
    """A cache `[1, 8, 4]` that a row is appended to, and nodes after it."""
    nodes = [helper.make_node("TensorScatter", ["past", "new", "at"], ["present"], axis=1), *more]
    return model(
        nodes,
        [("past", FLOAT, [1, 8, 4]), ("new", FLOAT, [1, 1, 4]), ("at", TensorProto.INT64, [1])],
        [("present", FLOAT, [1, 8, 4]), *outputs],
        opset=24,
    )


def feeds() -> dict[str, np.ndarray]:
    past = np.arange(32, dtype=np.float32).reshape(1, 8, 4)
    return {"past": past, "new": np.full((1, 1, 4), -1, np.float32), "at": np.array([5])}


def test_a_cache_is_appended_to_in_place() -> None:
    given = feeds()
    wanted = given["past"].copy()
    wanted[0, 5] = -1
    with tightship.load(appending()) as loaded:
        found = loaded.run(given, outputs={"present": given["past"]})
        assert found["present"] is given["past"]
        np.testing.assert_array_equal(given["past"], wanted)
        given["at"][:] = 0
        bound = loaded.bind(given, {"present": given["past"]})
        bound.run(tightship.StopFlag())
    wanted[0, 0] = -1
    np.testing.assert_array_equal(given["past"], wanted)


def test_a_later_reader_of_the_input_is_named() -> None:
    late = helper.make_node("Sub", ["past", "present"], ["difference"], name="late")
    data = appending(late, outputs=[("difference", FLOAT, [1, 8, 4])])
    given = feeds()
    before = given["past"].copy()
    with (
        tightship.load(data) as loaded,
        pytest.raises(tightship.InputError, match=r"`past`, and step `late.*` reads the input"),
    ):
        loaded.run(given, outputs={"present": given["past"]})
    np.testing.assert_array_equal(given["past"], before)


def test_other_overlaps_are_refused() -> None:
    given = feeds()
    room = np.zeros((2, 8, 4), np.float32)
    shifted = np.zeros(36, np.float32)
    with tightship.load(appending()) as loaded:
        part = shifted[:32].reshape(1, 8, 4)
        with pytest.raises(tightship.InputError, match="not the same bytes"):
            loaded.run({**given, "past": part}, outputs={"present": shifted[4:].reshape(1, 8, 4)})
        with pytest.raises(tightship.InputError, match="workers=1"):
            loaded.run({**given, "past": room[:1]}, outputs={"present": room[:1]}, workers=2)
    product = model(
        [helper.make_node("MatMul", ["x", "x"], ["y"], name="square")],
        [("x", FLOAT, [4, 4])], [("y", FLOAT, [4, 4])],
    )  # fmt: skip
    x = np.eye(4, dtype=np.float32)
    with (
        tightship.load(product) as loaded,
        pytest.raises(tightship.InputError, match="while it writes"),
    ):
        loaded.run({"x": x}, outputs={"y": x})


def test_group_query_attention_writes_over_a_cache_with_room() -> None:
    rows, shape = 16, (1, 2, 16, 16)
    data = decoders.genai(rows="max")
    sizes = {"batch_size": 1, "sequence_length": 1, "total_sequence_length": 6, "max": rows}
    random = np.random.default_rng(2)
    with tightship.load(data, shapes=sizes) as loaded:
        caches = {
            name: random.standard_normal(shape).astype(np.float32)
            for name in loaded.input_names
            if name.startswith("past")
        }
        given = {"input_ids": np.array([[3]]), "attention_mask": np.ones((1, 6), np.int64)}
        wanted = loaded.run({**given, **caches})
        over = {name.replace("past_key_values", "present"): a for name, a in caches.items()}
        found = loaded.run({**given, **caches}, outputs=over)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
            assert name == "logits" or found[name] is over[name]
