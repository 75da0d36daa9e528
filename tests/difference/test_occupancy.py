from tests.difference.pictures import plan, step, tensor
from tightship.difference.occupancy import live_bytes, occupancy


def test_each_live_tensor_has_its_bytes():
    found = plan([step("s", "Op"), step("t", "Op")],
                 [tensor("a", 64, 0, 0, 2), tensor("b", 32, 64, 0, 1)])  # fmt: skip
    assert occupancy(found, 0) == {0: 64, 1: 32}
    assert occupancy(found, 1) == {0: 64}


def test_bytes_that_are_shared_count_for_the_first():
    found = plan([step("s", "Op"), step("t", "Op")],
                 [tensor("a", 64, 0, 0, 2), tensor("b", 64, 0, 1, 2, shares_with="a")])  # fmt: skip
    assert occupancy(found, 1) == {0: 64, 1: 0}


def test_a_part_of_a_larger_tensor_adds_only_what_lies_beyond():
    found = plan([step("s", "Op")], [tensor("part", 64, 32, 0, 1), tensor("whole", 80, 0, 0, 1)])
    assert occupancy(found, 0) == {1: 80, 0: 16}


def test_live_bytes_of_a_plan_without_steps_are_none():
    assert live_bytes(plan([], []), 0) == 0
