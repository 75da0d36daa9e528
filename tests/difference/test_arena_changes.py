from tests.difference.pictures import chain
from tightship.difference import PlanDifference, compare_plans


def kinds(found):
    return {change.name: (change.kind, change.change_bytes) for change in found.changes}


def is_whole(found: PlanDifference) -> bool:
    return sum(change.change_bytes for change in found.changes) == found.change_bytes


def test_a_change_beside_the_peak_moves_nothing():
    found = compare_plans(chain(64, 640, 64, 64, 64), chain(64, 640, 64, 96, 64))
    assert found.change_bytes == 32  # the arena of a chain keeps every tensor apart
    assert [(change.kind, change.change_bytes) for change in found.changes] == [("holes", 32)]


def test_a_peak_at_another_step_counts_the_room_that_was_there():
    old, new = chain(400, 400, 8, 100, 100), chain(400, 400, 8, 100, 1000)
    found = compare_plans(old, new)
    assert is_whole(found)
    assert (found.step_old, found.step_new) == (4, 4)
    assert kinds(found)["t4"] == ("shape", 900)
    assert kinds(found)[""][0] in ("elsewhere", "holes")
