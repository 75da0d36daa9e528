"""ScatterND over whole values, as exports of T5 and BART write masks."""

import pytest

from tests.decoders import Writer
from tests.engine.state.one_operator import assert_same
from tightship.errors import GraphError


def _scattered(w: Writer, rows: str, axes: tuple[int, ...] = (0, 1, 2, 3), start: int = 0) -> str:
    """Write twice the rows over them, at places whose parts count along `axes`."""
    shape = w("Shape", rows)
    columns = ([-1, 1, 1, 1], [-1, 1, 1], [-1, 1], [-1])
    places = []
    for axis in axes:
        end = w("Add", w("Gather", shape, w.constant(axis)), w.constant(start))
        each = w("Range", w.constant(start), end, w.constant(1))
        each = w("Expand", w("Reshape", each, w.constant(columns[axis])), shape)
        places.append(w("Unsqueeze", each, w.constant([-1])))
    return w("ScatterND", rows, w("Concat", *places, axis=-1), w("Mul", rows, w.number(2)))


def test_what_is_written_over_a_whole_value_is_the_result() -> None:
    assert_same(lambda w, rows, _: w("ReduceSum", _scattered(w, rows), w.constant([2])))


@pytest.mark.parametrize(("axes", "start"), [((0, 1, 3, 2), 0), ((0, 1, 2, 3), -1)])
def test_another_order_is_refused_with_the_operator(axes: tuple[int, ...], start: int) -> None:
    with pytest.raises(GraphError, match=r"ScatterND.*in the order of its elements"):
        assert_same(lambda w, rows, _: _scattered(w, rows, axes, start))
