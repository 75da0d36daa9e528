"""Names and constants of a graph being written."""

import numpy as np

from tightship.engine.state.writer import Beyond, Extent, Writer
from tightship.graph import DType, Graph, Value
from tightship.graph.new_names import NewNames


def writer() -> Writer:
    empty = Graph("g", ("past",), (), {"past": Value("past", DType.INT64, (1,))}, ())
    return Writer(NewNames(empty), 16, "past")


def test_equal_parts_are_written_once() -> None:
    made = writer()
    assert made.constant([1, 2]) == made.constant(np.array([1, 2]))
    assert made.constant([1, 2]) != made.constant([[1, 2]])
    assert made.in_use(3) == made.in_use(3) != made.in_use(4)
    assert made.past_plus(0) == "past"
    assert len(made.nodes) == 4


def test_a_mask_lies_along_its_axis() -> None:
    made = writer()
    made.values["x"] = Value("x", DType.FLOAT32, (2, 16, 5))
    name = made.masked("x", 1, Extent(0, Beyond.ANY), 0)
    (where,) = [node for node in made.nodes if node.operator == "Where"]
    assert made.values[where.inputs[0]].shape == (16, 1)
    assert made.values[name].shape == (2, 16, 5)
