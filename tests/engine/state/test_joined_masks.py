"""Masks whose texts are joined to one axis."""

import numpy as np
import onnx
import pytest

from tests.decoder_exports import transformers5
from tests.decoders import INT64, Size, Writer
from tests.engine.state.loops import FixedCaches, GrowingCaches, decoder
from tightship.errors import GraphError


def test_rows_gathered_by_one_number_are_those_of_each_text() -> None:
    data = transformers5(flat=True)
    growing, fixed = GrowingCaches(data, 3), FixedCaches(data, 24, 3)
    for ids in ([3, 1, 4, 1], [5], [9, 2], [6]):
        np.testing.assert_allclose(fixed.step(ids), growing.step(ids), rtol=2e-5, atol=2e-5)


def test_another_reader_of_joined_texts_is_refused() -> None:
    w = Writer(Size(layers=1, heads=2, length=4))
    ids = w.input("input_ids", INT64, "batch", "steps")
    mask = w.input("attention_mask", INT64, "batch", "total_sequence_length")
    (past, _) = w.cache(0, 2, "batch")
    new = w.heads(w("Gather", w.weight(50, 8), ids), 2)
    rows = w("Concat", past, new, axis=2)
    logits = w("ReduceSum", w("Reshape", mask, w.constant([-1])), w.constant([0]), keepdims=0)
    w.called("present.0.key", rows)
    w.output("present.0.key", 1, "batch", 2, "total", 4)
    w.called("logits", logits)
    w.outputs.append(onnx.ValueInfoProto(name="logits"))
    del w.inputs[3]  # the cache of values, which nothing reads
    with pytest.raises(GraphError, match=r"ReduceSum\) has a mask whose texts are joined"):
        decoder(w.finished(), 12, 2).graph(1, last=False)
