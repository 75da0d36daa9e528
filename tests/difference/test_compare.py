import pytest

from tests.difference.pictures import chain, plan, step, tensor, weight
from tightship.difference import PlanDifference, compare_plans


def kinds(found):
    return {change.name: (change.kind, change.change_bytes) for change in found.changes}


def is_whole(found: PlanDifference) -> bool:
    return sum(change.change_bytes for change in found.changes) == found.change_bytes


def test_a_larger_tensor_at_the_peak_is_the_cause():
    old, new = chain(64, 128, 64), chain(64, 256, 64)
    found = compare_plans(old, new)
    assert is_whole(found)
    assert kinds(found) == {"t1": ("shape", 128)}
    assert found.cause.name == "t1"


def test_a_weight_of_a_wider_type_is_the_cause():
    steps, tensors = [step("s", "MatMul")], [tensor("a", 64, 0, 0, 1)]
    old = plan(steps, tensors, weights=[weight("w", 256, "16x16 int8")])
    new = plan(steps, tensors, weights=[weight("w", 1024, "16x16 float32")])
    found = compare_plans(old, new)
    assert (found.cause.kind, found.cause.name) == ("type", "w")
    assert found.cause.text == "Weight `w`: type, 16x16 float32 instead of 16x16 int8"
    assert found.parts["weights"] == (256, 1024)


@pytest.mark.parametrize(("old_count", "kind"), [(1, "packed twice"), (3, "packed once")])
def test_copies_of_a_weight_in_other_layouts_are_counted(old_count, kind):
    steps, tensors = [step("s", "MatMul")], [tensor("a", 64, 0, 0, 1)]
    made = [plan(steps, tensors, weights=[weight("w", 256)] * count) for count in (old_count, 2)]
    found = compare_plans(*made)
    assert (found.cause.kind, found.cause.name, is_whole(found)) == (kind, "w", True)


def test_renamed_weights_match_by_type():
    steps, tensors = [step("s", "MatMul")], [tensor("a", 64, 0, 0, 1)]
    old = plan(steps, tensors, weights=[weight("w", 256), weight("v", 512)])
    new = plan(steps, tensors, weights=[weight("p", 512), weight("q", 256)])
    assert compare_plans(old, new).changes == ()


def test_other_inputs_are_the_reason_of_what_follows_from_them():
    def made(batch):
        found = chain(64 * batch, 128 * batch)
        return plan(found.steps, found.rectangles, inputs={"x": f"{batch}x16 float32"},
                    io_bytes=64 * batch)  # fmt: skip

    found = compare_plans(made(1), made(4))
    assert found.cause.text == (
        "Input `x` is 4x16 float32 instead of 1x16 float32, and with it 2 tensors"
    )
    assert is_whole(found)


def test_empty_programs_can_be_compared():
    found = compare_plans(plan([], []), chain(64))
    assert (found.change_bytes, is_whole(found)) == (64, True)
    assert "64 B" in found.table()
