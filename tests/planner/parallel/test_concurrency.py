"""Prices and speeds of plans for several workers."""

from tightship.planner.parallel.concurrency import Concurrency, PlanChoice

SERIAL = PlanChoice("one after another", 100, 3, 6, 60)
FREE = PlanChoice("as soon as they can", 140, 0, 3, 40)


def test_a_price_is_what_one_worker_takes_less():
    found = Concurrency(2, (SERIAL, FREE), 1, (), 60)
    assert (found.plan, found.added_bytes) == (FREE, 40)
    assert [found.speedup_of(each) for each in found.choices] == [1.0, 1.5]


def test_a_program_without_operations_is_as_fast_as_any():
    empty = PlanChoice("one after another", 0, 0, 0, 0)
    assert Concurrency(2, (empty, empty), 0, (), 0).speedup_of(empty) == 1.0
