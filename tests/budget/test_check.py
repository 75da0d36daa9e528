import pytest

from tests.budget.budgets import write
from tightship.budget import (
    check_budgets,
)
from tightship.errors import FormatError, InputError


def test_models_are_held_to_their_budgets(folder):
    small = 'model = "model.onnx"\nshapes = {batch = 1}\nlimit = "64MiB"'
    large = 'model = "model.onnx"\nshapes = {batch = 65536}\nlimit = "40MiB"'
    results = check_budgets(write(folder, small, large))
    assert [each.fits for each in results] == [True, False]
    assert results[1].over_bytes == results[1].needed_bytes - (40 << 20)
    assert results[1].largest == "r 16.0 MiB"
    assert "needs 5" in results[1].message()
    assert "more than its budget of 40.0 MiB (41,943,040 bytes): arena 16.0 MiB" in (
        results[1].message()
    )


def test_a_budget_of_exactly_the_plan_holds(folder):
    (found,) = check_budgets(write(folder, 'model = "model.onnx"\nshapes = {batch = 1}'))
    limit = f'model = "model.onnx"\nshapes = {{batch = 1}}\nlimit = {found.needed_bytes}'
    assert check_budgets(write(folder, limit))[0].fits
    less = limit.replace(str(found.needed_bytes), str(found.needed_bytes - 1))
    assert check_budgets(write(folder, less))[0].over_bytes == 1


def test_errors_name_the_budget(folder):
    with pytest.raises(InputError, match=r"`wide`: .*`x`"):
        check_budgets(write(folder, 'name = "wide"\nmodel = "model.onnx"'))
    (folder / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(FormatError, match=r"model\.onnx"):
        check_budgets(write(folder, 'name = "wide"\nmodel = "model.onnx"'))
