from collections.abc import Sequence

import numpy as np
import pytest

from tests import models
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes
from tightship.graph import Graph

PAIR = """pair (float[batch, 3] a, int64[batch, seq] b, float c) => (float[batch, 3] y) {
    y = Neg (a)
}"""


def read_pair(**shapes: Sequence[int]) -> Graph:
    return read_bytes(models.parse(PAIR).SerializeToString(), shapes=shapes)


def test_a_symbol_bound_in_one_input_binds_everywhere() -> None:
    graph = read_pair(b=(8, 128))
    assert graph.value("a").shape == (8, 3)
    assert graph.value("b").shape == (8, 128)
    assert graph.value("y").shape == (8, 3)


def test_symbols_are_kept_where_they_are_allowed() -> None:
    graph = read_bytes(models.parse(PAIR).SerializeToString(), allow_symbolic=True)
    assert graph.value("b").shape == ("batch", "seq")
    assert graph.value("y").shape == ("batch", 3)


def test_a_question_mark_is_no_symbol() -> None:
    proto = models.parse(PAIR)
    for dimension in proto.graph.input[1].type.tensor_type.shape.dim:
        dimension.dim_param = "?"
    graph = read_bytes(proto.SerializeToString(), shapes={"a": (8, 3), "b": (8, 128), "c": ()})
    assert graph.value("b").shape == (8, 128)


def test_a_length_of_zero_is_a_length() -> None:
    assert read_pair(b=(0, 1)).value("y").shape == (0, 3)


def test_a_scalar_takes_the_empty_shape() -> None:
    assert read_pair(b=(1, 1), c=()).value("c").shape == ()


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({}, r"`a` \[batch, 3\], `b` \[batch, seq\]\. .*--shape batch=1 --shape seq=1"),
        ({"a": (8, 3)}, r"1 input\(s\) is not known: `b` \[8, seq\].*--shape b=8x1"),
        ({"x": (8, 3)}, r"no input `x`; its inputs are: `a`, `b`, `c`"),
        ({"b": (8,)}, r"`b` has 2 dimensions, \[batch, seq\], but was given 1; .*--shape b=1x1"),
        ({"a": (8, 4)}, r"dimension 1 was given as 4 where it is 3"),
        ({"a": (8, 3), "b": (9, 1)}, r"dimension 0 was given as 9 where `batch` is 8"),
        ({"b": (-1, 1)}, r"`b` was given the shape \[-1, 1\]"),
        ({"b": (2**40, 2**40)}, r"a tensor has at most 281474976710656 elements"),
        ({"b": (0, 2**64)}, r"a tensor has at most 281474976710656 elements"),
    ],
    ids=["none", "one", "unknown", "rank", "fixed", "conflict", "negative", "large", "empty"],
)
def test_shapes_that_do_not_fit_are_refused(shapes: dict[str, tuple[int]], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_pair(**shapes)


def test_an_input_without_a_shape_takes_any() -> None:
    model = models.parse("agraph (float[1] x) => (float[1] y) { y = Neg (x) }")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    raw = model.SerializeToString()
    assert read_bytes(raw, shapes={"x": (2, 3, 4)}).value("y").shape == (2, 3, 4)
    with pytest.raises(InputError, match="`x` of any rank"):
        read_bytes(raw)


def test_a_sequence_takes_no_shape() -> None:
    model = models.parse("agraph (seq(float[2]) x) => (int64 n) { n = SequenceLength (x) }")
    with pytest.raises(InputError, match="`x` is not a tensor"):
        read_bytes(model.SerializeToString(), shapes={"x": (2,)})


def test_an_initializer_is_no_input() -> None:
    model = models.parse(
        "agraph (float[2] x, float[2] w) => (float[2] y) { y = Add (x, w) }",
        w=np.ones(2, np.float32),
    )
    graph = read_bytes(model.SerializeToString())
    assert graph.inputs == ("x",)
    assert graph.constants["w"].array().tolist() == [1, 1]
    with pytest.raises(InputError, match="no input `w`"):
        read_bytes(model.SerializeToString(), shapes={"w": (2,)})


def test_a_dimension_below_zero_is_an_unknown_one() -> None:
    model = models.parse("agraph (float[7] x) => (float[n] y) { y = Neg (x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    with pytest.raises(InputError, match=r"`x` \[\?\]"):
        read_bytes(model.SerializeToString())
