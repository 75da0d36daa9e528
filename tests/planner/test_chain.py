"""Chains of atoms: where they are cut, and which steps go back with which atom."""

from tests.planner.chains import chain
from tightship.planner.chain import Chain


def test_a_value_that_is_read_late_by_a_later_atom_goes_back_with_that_atom():
    schedule, costs = chain(6, 100, 100)
    found = Chain(schedule, costs, 5)
    assert found.bounds == [0, 1, 2, 3, 4, 5, 6]
    # v5 is read by no later atom, so its way back is that of its own; the others one later.
    assert found.backward == [[], [11], [10], [9], [8], [6, 7]]


def test_an_atom_that_goes_back_takes_what_its_steps_hold():
    schedule, costs = chain(6, 100, 100)
    found = Chain(schedule, costs, 5)
    sweep, whole, last, saved, _, back, arriving = found.rows.tolist()
    assert sweep == [100] * 5 + [0]  # nothing crosses into what follows the last
    assert whole == [100] * 6
    assert last == [0] * 5 + [100]
    assert saved == [64] * 6
    assert back == [0, 64, 64, 64, 64, 128]  # a gradient is written over the one before
    assert arriving == [0] + [64] * 4 + [0]
    assert found.held[0].tolist() == [0] + [64] * 5
    assert found.held[2].tolist() == [0, 0, 0] + [64] * 3
