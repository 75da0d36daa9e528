import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.cost.batch import BATCH_MAX, largest_batch, with_batch
from tightship.errors import InputError


@given(st.integers(0, 1000), st.integers(1, 50), st.integers(0, 10**6))
def test_bytes_in_proportion_take_four_calls(fixed, each, limit):
    calls = []

    def bytes_of(batch):
        calls.append(batch)
        return fixed + each * batch

    found = largest_batch(bytes_of, limit)
    assert found == min(BATCH_MAX, max(0, (limit - fixed) // each))
    assert len(calls) <= 4


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 200))
def test_any_growth_finds_the_largest_that_fits(growth, limit):
    sizes = [sum(growth[: index + 1]) for index in range(len(growth))]

    def bytes_of(batch):
        return sizes[batch - 1] if batch <= len(sizes) else 10**9

    assert largest_batch(bytes_of, limit) == sum(size <= limit for size in sizes)


def test_the_batch_is_the_dimension_left_open_first():
    declared = {"ids": ("batch", 8), "mask": ("batch", 8), "past": ("past", 2), "one": (1, 3)}
    assert with_batch(declared, {}, 5) == {"ids": (5, 8), "mask": (5, 8)}


def test_shapes_that_are_given_keep_their_other_lengths():
    declared = {"ids": ("batch", "length")}
    assert with_batch(declared, {"ids": (1, 128)}, 5) == {"ids": (5, 128)}
    with pytest.raises(InputError, match="--shape ids=1xlength"):
        with_batch(declared, {}, 5)


@pytest.mark.parametrize("declared", [{"x": (1, 3)}, {"x": ()}, {"x": None}, {}])
def test_a_batch_that_the_file_fixes_is_refused(declared):
    with pytest.raises(InputError, match="fixed in the file"):
        with_batch(declared, {}, 5)
