from tests.budget.budgets import write
from tightship.budget import (
    check_budgets,
    locked,
    read_lock,
    write_lock,
)
from tightship.budget.lock import lock_text
from tightship.budget.tables import check_json, check_text, lock_difference


def test_what_exceeds_its_budget_comes_first(folder):
    small = 'model = "model.onnx"\nshapes = {batch = 1}\nlimit = "64MiB"'
    large = 'model = "model.onnx"\nshapes = {batch = 65536}\nlimit = "40MiB"'
    results = check_budgets(write(folder, small, large))
    lines = check_text(results, "avx2").splitlines()
    assert lines[0] == "1 of 2 budgets exceeded, planned for avx2"
    assert lines[4].split()[:2] == ["model.onnx", "batch=65536"]
    assert max(map(len, lines)) <= 100
    assert check_json(results, "avx2")["fits"] is False


def test_a_lock_file_tells_what_changed(folder):
    results = check_budgets(write(folder, 'model = "model.onnx"\nshapes = {batch = 8}'))
    found = locked(results, "avx2")
    write_lock(folder / "tightship.lock", found)
    assert read_lock(folder / "tightship.lock") == found
    assert (folder / "tightship.lock").read_text() == lock_text(found)
    assert lock_difference(found, found) == ""
    amounts = found.models["model.onnx batch=8"]
    parts = [size for name, size in amounts.items() if name != "peak_bytes"]
    assert amounts["peak_bytes"] == sum(parts)
    results = check_budgets(write(folder, 'model = "model.onnx"\nshapes = {batch = 9}'))
    more = locked(results, "avx2")
    text = lock_difference(found, more)
    assert "model.onnx batch=8" in text
    assert "model.onnx batch=9" in text
