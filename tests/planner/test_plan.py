from dataclasses import replace

import numpy as np
import pytest

from tests.planner.problems import problem
from tightship.planner.plan import Plan


def plan_of(*offsets, bound=12, **fields):
    made = problem((8, 0, 2, 1), (4, 1, 3, 1), **fields)
    return Plan(made, np.array(offsets, np.int64), "by hand", bound, "feasible")


def test_the_peak_is_the_highest_end():
    assert plan_of(0, 8).peak_bytes == 12
    assert plan_of(4, 0).peak_bytes == 12
    assert plan_of(4, 20).peak_bytes == 24


def test_peaks_are_computed_once() -> None:
    plan = plan_of(0, 8)
    assert plan.bank_peak_bytes is plan.bank_peak_bytes


def test_a_copy_with_other_offsets_has_its_own_peak() -> None:
    plan = plan_of(0, 8)
    assert plan.peak_bytes == 12
    assert replace(plan, offset_bytes=np.array([4, 20])).peak_bytes == 24


def test_the_gap_is_what_exceeds_the_bound():
    assert plan_of(0, 8).gap == 0
    assert plan_of(10, 0).gap == pytest.approx(0.5)
    assert Plan(problem(), np.zeros(0, np.int64), "none", 0, "optimal").gap == 0


def test_a_plan_fits_a_capacity_of_its_peak():
    assert plan_of(0, 8).fits
    assert plan_of(0, 8, capacity_bytes=12).fits
    assert not plan_of(0, 8, capacity_bytes=11).fits


def test_offsets_are_copies_that_cannot_be_written():
    offsets = np.array([0, 8], np.int64)
    made = Plan(problem((8, 0, 2, 1), (4, 1, 3, 1)), offsets, "by hand", 12, "optimal")
    offsets[0] = 64
    assert made.offset_bytes.tolist() == [0, 8]
    with pytest.raises(ValueError, match="read-only"):
        made.offset_bytes[0] = 1


def test_a_plan_is_a_line_in_a_terminal():
    assert repr(plan_of(0, 8)) == "<tightship.Plan feasible: 2 buffers in 12 bytes (by hand)>"
