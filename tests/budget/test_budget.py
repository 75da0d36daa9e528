from tests.budget.budgets import write
from tightship.budget import (
    Budget,
    check_budgets,
)
from tightship.budget.tables import check_text


def test_a_title_names_the_shapes_and_threads(folder):
    budget = Budget(folder / "model.onnx", None, {"batch": 8, "x": (1, 2)}, 4)
    assert budget.title == "model.onnx batch=8 x=1x2 threads=4"


def test_steps_outside_the_plan_need_a_bound(folder):
    open_, bound = 'model = "dynamic.onnx"\nlimit = "1GiB"', '\ndynamic = "32MiB"\nname = "bound"'
    results = check_budgets(write(folder, open_, open_ + bound))
    assert [each.fits for each in results] == [False, True]
    assert "allocate outside the plan (" in results[0].message()
    assert results[1].needed_bytes == results[1].plan.peak_bytes + (32 << 20)
    assert "unbounded" in check_text(results, "avx2")
