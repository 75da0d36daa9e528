"""Graphs of a few operators around a cache: rewritten, against ONNX Runtime at each length."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from tests.decoders import FLOAT, INT64, Size, Writer
from tests.engine.state.loops import decoder
from tightship.errors import GraphError
from tightship.loading.entry import load_graph

Array = NDArray[Any]
Build = Callable[[Writer, str, str], str]
"""Writes an output from the cache of past and new rows, and from the tokens."""
CONTEXT = 12


def model_of(build: Build, opset: int = 17, *, tokens: str = "sequence_length") -> bytes:
    """A model with one cache `[1, 2, rows, 4]`, and an output that `build` computes."""
    w = Writer(Size(layers=1, heads=2, length=4), opset)
    ids = w.input("input_ids", INT64, 1, tokens)
    (past, _) = w.cache(0, 2, 1)
    table = w.weight(50, 8)
    new = w.heads(w("Gather", table, ids), 2)
    rows = w("Concat", past, new, axis=2)
    result = build(w, rows, ids)
    w.called("present.0.key", rows)
    w.output("present.0.key", FLOAT, 1, 2, "total", 4)
    w.called("result", result)
    w.outputs.append(onnx.ValueInfoProto(name="result"))
    del w.inputs[2]  # the cache of values, which nothing reads
    return w.finished()


def assert_same(build: Build, opset: int = 17) -> None:
    """Results at several lengths, with the cache's rows beyond them zero, equal those wanted."""
    data = model_of(build, opset)
    session = onnxruntime.InferenceSession(data)
    rewritten = decoder(data, CONTEXT)
    random = np.random.default_rng(1)
    for steps in (1, 4):
        with load_graph(rewritten.graph(steps, last=False), "one operator") as model:
            for past in (0, 1, 5, CONTEXT - steps):
                ids = random.integers(0, 50, (1, steps))
                cache = random.standard_normal((1, 2, past, 4)).astype(np.float32)
                whole = np.zeros((1, 2, CONTEXT, 4), np.float32)
                whole[:, :, :past] = cache
                wanted = session.run(None, {"input_ids": ids, "past_key_values.0.key": cache})
                found = model.run({
                    "input_ids": ids, "past_key_values.0.key": whole,
                    "past_length": np.array([past]),
                })  # fmt: skip
                np.testing.assert_array_equal(
                    found["present.0.key"][:, :, : past + steps], wanted[0]
                )
                np.testing.assert_allclose(found["result"], wanted[1], rtol=1e-5, atol=1e-6)


def assert_refused(build: Build, match: str, opset: int = 17) -> None:
    """The rewriting is refused, and the error says why."""
    rewritten = decoder(model_of(build, opset), CONTEXT)
    with pytest.raises(GraphError, match=match):
        rewritten.graph(1, last=False)
