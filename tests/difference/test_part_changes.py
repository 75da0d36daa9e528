from tests.difference.pictures import plan
from tightship.difference.part_changes import io_changes, runtime_changes


def test_inputs_and_outputs_are_compared_by_name():
    old = plan([], [], inputs={"x": "2 float32"}, outputs={"y": "2 float32"}, io_bytes=16)
    new = plan([], [], inputs={"x": "2 float64"}, outputs={"z": "4 float32"}, io_bytes=32)
    found = {change.name: (change.kind, change.change_bytes) for change in io_changes(old, new)}
    assert found == {"x": ("type", 8), "z": ("new", 16), "y": ("gone", -8)}


def test_the_runtime_differs_by_what_the_plans_depend_on():
    old = plan([], [], runtime_bytes=10, key={"threads": "1"})
    new = plan([], [], runtime_bytes=30, key={"threads": "2"})
    (found,) = runtime_changes(old, new)
    assert (found.kind, found.why) == ("kernels", "threads 2 instead of 1")
    assert runtime_changes(old, old) == []
