import re

import pytest

import tightship
from tests.small_models import dense, nonzero
from tightship.loading.budget import largest_batch
from tightship.quantity import parse_bytes


def plan_of(batch):
    return tightship.plan(dense(hidden=4096)[0], shapes={"x": (batch, 32)})


def test_a_limit_below_the_plan_is_refused_with_the_smallest_limit_that_holds():
    data, shapes = dense()[0], {"x": (4, 32)}
    with pytest.raises(tightship.CapacityError) as refused:
        tightship.load(data, shapes=shapes, max_memory="1MiB")
    assert refused.value.limit_bytes == 1 << 20
    assert refused.value.needed_bytes == tightship.plan(data, shapes=shapes).peak_bytes
    advised = re.search(r"Raise the limit to (\w[\w.]*\w)", str(refused.value))[1]
    tightship.load(data, shapes=shapes, max_memory=advised).close()


def test_the_limit_itself_is_allowed_and_one_byte_less_is_not():
    data, shapes = dense()[0], {"x": (4, 32)}
    peak = tightship.plan(data, shapes=shapes).peak_bytes
    tightship.load(data, shapes=shapes, max_memory=peak).close()
    with pytest.raises(tightship.CapacityError):
        tightship.load(data, shapes=shapes, max_memory=peak - 1)


def test_the_largest_batch_that_fits_is_named_and_does_fit():
    data = dense(hidden=4096)[0]
    limit = plan_of(700).peak_bytes
    with pytest.raises(tightship.CapacityError) as refused:
        tightship.load(data, shapes={"x": (3000, 32)}, max_memory=limit)
    batch = int(re.search(r"down to (\d+)", str(refused.value))[1])
    assert batch >= 700
    assert plan_of(batch).peak_bytes <= limit < plan_of(batch + 1).peak_bytes


def test_a_limit_no_batch_fits_says_so():
    with pytest.raises(tightship.CapacityError, match="not even a batch of 1"):
        tightship.load(dense()[0], shapes={"x": (8, 32)}, max_memory="1MiB")


def test_a_bounded_plan_needs_a_bound_on_its_dynamic_region():
    with pytest.raises(tightship.CapacityError, match=r"NonZero.*dynamic_memory"):
        tightship.load(nonzero(), max_memory="1GiB")
    tightship.load(nonzero(), max_memory="1GiB", dynamic_memory="64MiB").close()


def test_the_dynamic_region_counts_against_the_limit():
    peak = tightship.plan(nonzero()).peak_bytes
    region = parse_bytes("64MiB")
    with pytest.raises(tightship.CapacityError):
        tightship.load(nonzero(), max_memory=peak + region - 1, dynamic_memory=region)


@pytest.mark.parametrize("limit", [0, -1, "0", "-64MiB", "12 apples", "nan", ""])
def test_a_limit_that_is_no_amount_is_an_input_error(limit):
    with pytest.raises(tightship.InputError, match="memory"):
        tightship.load(dense()[0], shapes={"x": (4, 32)}, max_memory=limit)


def test_bisection_finds_the_border():
    class Fake:
        def __init__(self, peak_bytes):
            self.peak_bytes = peak_bytes

    for border in range(10):
        assert largest_batch(10, border * 7 + 3, lambda batch: Fake(batch * 7)) == border
