import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, TypeProto

from tightship.frontend.onnx import types
from tightship.graph import DType, Shape, Value

dimensions = st.none() | st.integers(0, 3) | st.sampled_from(["n", "m"])
shapes = st.none() | st.lists(dimensions, max_size=2).map(tuple)
dtypes = st.sampled_from([DType.FLOAT32, DType.INT64])
tensors = st.builds(types.tensor_type, dtypes, shapes)
anything = st.recursive(tensors | st.builds(TypeProto), lambda t: t.map(types.sequence_of))


@given(dtypes, shapes)
def test_a_shape_is_given_back(dtype: DType, shape: Shape | None) -> None:
    assert types.values_of({"v": types.tensor_type(dtype, shape)}) == {
        "v": Value("v", dtype, shape)
    }


@given(anything, anything)
def test_widening_does_not_depend_on_the_order(first: TypeProto, second: TypeProto) -> None:
    assert types.widen(first, second) == types.widen(second, first)


@given(anything, anything)
def test_what_is_widened_twice_does_not_change(first: TypeProto, second: TypeProto) -> None:
    widened = types.widen(first, second)
    assert types.widen(widened, first) == widened
    assert types.widen(widened, widened) == widened


@given(tensors, tensors)
def test_what_was_inferred_is_not_overruled(inferred: TypeProto, declared: TypeProto) -> None:
    refined = types.refine(inferred, declared)
    assert refined.tensor_type.elem_type == inferred.tensor_type.elem_type
    known, found = types.shape_of(inferred), types.shape_of(refined)
    if known is not None:
        assert found is not None
        assert all(a == b for a, b in zip(known, found, strict=True) if isinstance(a, int))


@given(tensors)
def test_a_type_that_was_not_inferred_is_the_declared_one(declared: TypeProto) -> None:
    assert types.refine(TypeProto(), declared) == declared


@pytest.mark.parametrize("prepare", [types.sound, lambda type_: types.bind(type_, {})])
def test_a_dimension_below_zero_becomes_unknown(prepare: object) -> None:
    assert callable(prepare)
    type_ = types.with_shape(TensorProto.FLOAT, (2, -5, "n"))
    assert prepare(type_) == types.with_shape(TensorProto.FLOAT, (2, None, "n"))


def test_binding_leaves_other_symbols() -> None:
    type_ = types.with_shape(TensorProto.FLOAT, ("n", "m", None))
    assert types.shape_of(types.bind(type_, {"n": 7})) == (7, "m", None)
