import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.graph.layout import UnboundLengthError
from tightship.graph.length import Trace, is_length, quotient, value_of

OPERATIONS = (operator.add, operator.sub, operator.mul)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
NUMBERS = st.integers(-5, 40)


def test_a_length_passes_for_an_integer():
    trace = Trace()
    n = trace.symbol("n", 16)
    assert isinstance(n, int)
    assert is_length(n)
    assert not is_length(16)
    assert value_of(3 * n + 2) == 50
    assert trace.conditions == {}


@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), NUMBERS, st.booleans())), NUMBERS, NUMBERS)
def test_what_is_computed_from_lengths_holds_for_others(steps, first, second):
    def compute(n):
        result = n
        for operation, number, swapped in steps:
            result = operation(number, result) if swapped else operation(result, number * n)
        return result

    trace = Trace()
    found = compute(trace.symbol("n", first))
    assert value_of(found) == compute(first)
    values = trace.values({"n": second})
    expected = compute(second)
    assert (values[found.number] if is_length(found) else found) == expected


@given(st.sampled_from(COMPARISONS), NUMBERS, NUMBERS, NUMBERS)
def test_conditions_hold_where_the_same_is_decided(comparison, first, second, number):
    trace = Trace()
    decided = comparison(2 * trace.symbol("n", first), number)
    assert decided == comparison(2 * first, number)
    holds = trace.values({"n": second}) is not None
    assert holds == (decided == comparison(2 * second, number))


def test_what_follows_from_expressions_alone_is_no_condition():
    trace = Trace()
    n, m = trace.symbol("n", 6), trace.symbol("m", 4)
    assert n - n == 0
    assert n + 1 > n
    assert n * m == m * n
    assert quotient(12 * n * m, 4 * n) == 3 * m
    assert quotient((n + m) * 64, (m + n) * 16) == 4
    assert quotient(3 * n * (n + 2), n + 2) == 3 * n
    assert set(trace.conditions.values()) == {False}  # no divisor is 0
    assert len(trace.conditions) == 3


@pytest.mark.parametrize("look", [int, float, hash, np.zeros, range, bool, str, "{:d}".format])
def test_a_look_at_the_value_leaves_a_condition(look):
    trace = Trace()
    look(trace.symbol("n", 5))
    assert trace.values({"n": 5}) is not None
    assert look is bool or trace.values({"n": 6}) is None


def test_quotients_and_remainders_are_followed():
    trace = Trace()
    n = trace.symbol("n", 17)
    half, rest = (n + 1) // 2, n % 4
    values = trace.values({"n": 30})
    assert (values[half.number], values[rest.number]) == (15, 2)
    assert quotient(n + 1, 9) == 2
    assert trace.values({"n": 18}) is None


def test_a_division_by_what_may_be_zero_does_not_hold_there():
    trace = Trace()
    assert value_of(12 // trace.symbol("n", 3)) == 4
    assert trace.values({"n": 0}) is None


def test_sealed_lengths_have_bound_values_only():
    trace = Trace()
    n = trace.symbol("n", 5)
    twice = 2 * n
    trace.seal()
    with trace.bound(trace.values({"n": 8})):
        assert (int(n), int(twice), n * 3, n > 7) == (8, 16, 24, True)
    for look in (int, bool, lambda length: length + 1, lambda length: length == 5):
        with pytest.raises(UnboundLengthError):
            look(n)
    assert trace.conditions == {}
