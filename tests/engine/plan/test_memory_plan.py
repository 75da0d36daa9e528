import numpy as np

from tightship.engine.plan.memory_plan import MemoryPlan, PlannedStep, PlannedTensor
from tightship.planner import Problem, place

ARENA = place(Problem(*(np.array(c, np.int64) for c in ([128, 64], [0, 1], [2, 2], [64, 64]))))


def plan(**changes):
    fields = {
        "model": "tiny.onnx",
        "weights_bytes": 1000,
        "arena": ARENA,
        "io_bytes": 30,
        "runtime_bytes": 7,
        "strategies": {"none": 256, "planned": 192},
        "steps": (
            PlannedStep("n0", "Conv", "onednn", "jit:avx2", 128),
            PlannedStep("n1", "NonZero", "reference", "", 192, "rows depend on data"),
        ),
        "tensors": (
            PlannedTensor("x", "activation", 128, 0, 0, 2),
            PlannedTensor("y", "scratch", 64, 128, 1, 2, shares_with="x"),
        ),
        "key": {"threads": "2"},
        "inputs": {"a": "float32 1x3"},
        "outputs": {"b": "float32 1"},
    }
    return MemoryPlan(**{**fields, **changes})


def test_a_picture_holds_the_totals_of_its_plan():
    picture = plan().picture()
    assert picture.peak_bytes == plan().peak_bytes
    assert picture.peak_step() == plan().peak_step
    assert picture.is_exact == plan().is_exact
    assert picture.strategies["none"] == 256
    assert (picture.key, picture.inputs, picture.outputs) == (
        plan().key,
        plan().inputs,
        plan().outputs,
    )


def test_a_picture_holds_every_tensor_where_it_was_placed():
    fields = ("name", "size_bytes", "offset_bytes", "start_step", "stop_step", "shares_with")
    for rectangle, tensor in zip(plan().picture().rectangles, plan().tensors, strict=True):
        assert [getattr(rectangle, f) for f in fields] == [getattr(tensor, f) for f in fields]
        assert rectangle.kind == tensor.kind


def test_a_step_says_what_runs_it_and_why_it_is_dynamic():
    first, second = plan().picture().steps
    assert (first.operator, first.kernel) == ("Conv", "onednn jit:avx2")
    assert (second.kernel, second.dynamic_reason) == ("reference", "rows depend on data")


def test_a_plan_is_a_line_in_a_terminal_and_a_picture_in_a_notebook():
    assert (
        repr(plan()) == f"<tightship.MemoryPlan tiny.onnx: peak {plan().peak_bytes} bytes, bounded>"
    )
    assert plan()._repr_html_().startswith("<svg")
