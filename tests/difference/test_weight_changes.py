from tests.difference.pictures import plan, step, tensor, weight
from tightship.difference.matching import match
from tightship.difference.weight_changes import weight_changes as changes_of
from tightship.view.picture import Weight


def weight_changes(old, new):
    return changes_of(old, new, match(old, new))


def test_a_weight_that_only_one_plan_has_is_new_or_gone():
    old, new = plan([], [], weights=[weight("w", 64)]), plan([], [], weights=[weight("v", 128)])
    found = {change.name: (change.kind, change.change_bytes) for change in weight_changes(old, new)}
    assert found == {"w": ("gone", -64), "v": ("new", 128)}


def test_a_plan_that_lists_no_weights_is_compared_by_their_sum():
    old, new = plan([], [], weights_bytes=64), plan([], [], weights=[weight("w", 128)])
    assert [change.change_bytes for change in weight_changes(old, new)] == [64]


def test_whole_cache_lines_are_a_change_of_their_own():
    old = plan([], [], weights=[weight("w", 60)], weights_bytes=64)
    new = plan([], [], weights=[weight("w", 68)], weights_bytes=128)
    assert [(c.kind, c.change_bytes) for c in weight_changes(old, new)] == [
        ("shape", 8),
        ("rounding", 56),
    ]


def test_weights_of_other_names_match_by_the_step_that_reads_them():
    def made(*weights):
        return plan([step("s", "MatMul")], [tensor("a", 64, 0, 0, 1)], weights=weights)

    old = made(Weight("blocks", 128, "16x8 uint8", 0), Weight("scales", 64, "16x1 float32", 0))
    new = made(Weight("w", 1024, "16x16 float32", 0))
    (found,) = weight_changes(old, new)
    assert (found.kind, found.name, found.old_bytes, found.new_bytes) == ("type", "w", 192, 1024)
    assert found.why == "16x16 float32 instead of 16x8 uint8 with 16x1 float32"
