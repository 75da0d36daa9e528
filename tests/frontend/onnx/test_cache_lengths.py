"""Lengths of caches that operators fix."""

import onnx

from tests import decoders
from tests.decoders import FLOAT, INT64, Size, Writer
from tightship.frontend.onnx import open_bytes


def test_a_head_has_the_length_that_its_query_tells() -> None:
    file = open_bytes(decoders.genai(sliding=True, window=4))
    past, present = file.declared, file.declared_outputs
    assert past["past_key_values.1.key"] == ("batch_size", 2, "past_sequence_length", 16)
    assert present["present.1.value"] == ("batch_size", 2, "total_sequence_length", 16)


def test_a_sliding_cache_keeps_its_rows() -> None:
    file = open_bytes(decoders.genai(sliding=True, window=4))
    assert file.declared_outputs["present.0.key"] == file.declared["past_key_values.0.key"]


def test_appended_rows_tell_the_other_lengths() -> None:
    w = Writer(Size(layers=1, heads=2, length=4))
    ids = w.input("input_ids", INT64, "batch", "steps")
    (past, _) = w.cache(0, 2, "batch")
    new = w.heads(w("Gather", w.weight(50, 8), ids), 2)
    w.describe(new, "batch", 2, "steps", 4)
    rows = w("Concat", past, new, axis=2)
    w.called("present.0.key", rows)
    w.output("present.0.key", FLOAT, "batch", "heads", "total", "length")
    w.inputs[1].type.tensor_type.shape.dim[3].dim_param = "length"
    file = open_bytes(w.finished())
    assert file.declared["past_key_values.0.key"] == ("batch", 2, "past_sequence_length", 4)
    assert file.declared_outputs["present.0.key"] == ("batch", 2, "total", 4)


def test_what_no_operator_tells_stays_open() -> None:
    model = onnx.load_from_string(decoders.genai(sliding=True, window=4))
    del model.graph.value_info[:]
    data = model.SerializeToString()
    assert open_bytes(data).declared["past_key_values.1.key"] is not None
    assert open_bytes(data).declared["past_key_values.1.key"][3] == "kv_cache_dim"
