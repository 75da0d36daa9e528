"""Values made from lengths."""

import numpy as np
from onnx import numpy_helper

from tests.decoders import FLOAT, Writer
from tests.engine.state.one_operator import assert_refused, assert_same


def length(w: Writer, rows: str) -> str:
    return w("Squeeze", w("Shape", rows, start=2, end=3), w.constant([0]))


def test_positions_of_all_rows() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        places = w("Range", w.constant(0), length(w, rows), w.constant(1))
        weights = w("Unsqueeze", w("Cast", places, to=FLOAT), w.constant([1]))
        return w("ReduceSum", w("Mul", rows, weights), w.constant([2]))

    assert_same(build)


def test_positions_of_new_rows_and_the_length_itself() -> None:
    def build(w: Writer, rows: str, ids: str) -> str:
        total, steps = length(w, rows), w("Squeeze", w("Shape", ids, start=1), w.constant([0]))
        places = w("Range", w("Sub", total, steps), total, w.constant(1))
        return w("Div", w("Cast", places, to=FLOAT), w("Cast", total, to=FLOAT))

    assert_same(build)


def test_a_filled_mask() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        fill = numpy_helper.from_array(np.array([2], np.float32))
        ones = w("ConstantOfShape", w("Shape", rows), value=fill)
        return w("ReduceSum", w("Add", rows, ones), w.constant([2]))

    assert_same(build)


def test_a_range_by_twos_is_refused() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        return w("Range", w.constant(0), length(w, rows), w.constant(2))

    assert_refused(build, "Range|depends")
