from hypothesis import given
from hypothesis import strategies as st

from tightship.driver.types.dimensions import combine, element_count, is_specified
from tightship.driver.types.operand_type import OperandType, ValueType

partly = st.lists(st.integers(0, 3), max_size=4).map(tuple)


def is_instance(full, pattern):
    return not pattern or (
        len(full) == len(pattern) and all(p in (0, f) for f, p in zip(full, pattern, strict=True))
    )


@given(partly, partly)
def test_combining_is_symmetric(one, other):
    assert combine(one, other) == combine(other, one)


@given(partly, partly, partly)
def test_combining_is_associative_where_nothing_contradicts(one, other, third):
    left, right = combine(one, other), combine(other, third)
    if left is not None and right is not None:
        assert combine(left, third) == combine(one, right)


@given(partly)
def test_what_is_known_twice_is_known(one):
    assert combine(one, one) == one
    assert combine(one, ()) == one


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple), partly, partly)
def test_full_dimensions_fit_two_patterns_if_and_only_if_they_fit_both_combined(full, one, other):
    combined = combine(one, other)
    fits = is_instance(full, one) and is_instance(full, other)
    assert fits == (combined is not None and is_instance(full, combined))


def test_a_size_is_zero_while_an_axis_or_the_rank_is_unknown():
    tensor = OperandType.TENSOR_FLOAT16
    assert ValueType(tensor, (2, 0)).size_bytes == 0
    assert ValueType(tensor, ()).size_bytes == 0
    assert ValueType(tensor, (2, 3)).size_bytes == 12
    assert ValueType(OperandType.INT32).size_bytes == 4


def test_a_scalar_is_specified_by_having_no_dimensions():
    assert is_specified((), is_scalar=True)
    assert not is_specified((), is_scalar=False)
    assert not is_specified((1,), is_scalar=True)
    assert element_count(()) == 1
