import json

import pytest

from tests.planner.format.tflite_models import chain, planned
from tests.training.nets import transformer
from tightship.cli import main

HEADER = "id,lower,upper,size,offset\n"
VALID = HEADER + "a,0,3,64,0\nb,2,4,32,64\nc,3,5,64,0\n"


@pytest.fixture
def judge(tmp_path, capsys):
    def run(content, *options, name="plan.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        code = main(["verify", str(path), *options])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


def test_a_valid_plan_is_said_to_be(judge):
    code, out = judge(VALID)
    assert code == 0
    assert "valid. 3 buffers in 96 bytes" in out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("b,2,4,32,64", "b,2,4,32,63", "0 `a` and 1 `b` overlap: bytes [63, 64) in steps [2, 3)"),
        ("c,3,5,64,0", "c,3,5,64,16", "1 `b` and 2 `c` overlap: bytes [64, 80) in steps [3, 4)"),
        ("c,3,5,64,0", "c,2,5,64,0", "0 `a` and 2 `c` overlap: bytes [0, 64) in steps [2, 3)"),
        ("a,0,3,64,0", "a,0,3,65,0", "0 `a` and 1 `b` overlap: bytes [64, 65) in steps [2, 3)"),
    ],
)
def test_a_planted_fault_is_named_by_buffers_bytes_and_steps(judge, old, new, words):
    code, out = judge(VALID.replace(old, new))
    assert code == 1
    assert words in out


REPORT = {
    "arena_bytes": 96,
    "tensors": [
        {"name": name, "size_bytes": size, "offset_bytes": offset, "start_step": start,
         "stop_step": stop, "shares_with": host}
        for name, size, offset, start, stop, host in (
            ("a", 64, 0, 0, 3, None), ("b", 32, 64, 2, 4, None), ("c", 64, 0, 2, 5, "a"),
        )
    ],
}  # fmt: skip
"""Report of a model's plan as printed; `c` is written over `a`."""


def test_a_models_own_plan_is_judged_too(judge, tmp_path, capsys):
    assert "valid. 2 buffers in 96 bytes" in judge(json.dumps(REPORT), name="plan.json")[1]
    code, out = judge(json.dumps(REPORT).replace('"a"}', "null}"), name="plan.json")
    assert code == 1
    assert "0 `a` and 2 `c` overlap: bytes [0, 64) in steps [2, 3)" in out
    code, out = judge(json.dumps(REPORT | {"arena_bytes": 95}), name="plan.json")
    assert code == 2
    assert "its tensors end at 96" in out
    model = tmp_path / "model.onnx"
    model.write_bytes(transformer().model)
    assert main(["plan", str(model), "--json"]) == 0
    assert judge(capsys.readouterr().out, name="plan.json")[0] == 0


def test_a_capacity_is_held_against_the_plan(judge):
    assert judge(VALID, "--capacity", "96")[0] == 0
    code, out = judge(VALID, "--capacity", "95")
    assert code == 1
    assert "Buffer 1 `b` ends at byte 96; the capacity is 95 bytes" in out


def test_json_says_the_same(judge):
    _, out = judge(VALID, "--json")
    assert json.loads(out) == {
        "valid": True,
        "peak_bytes": 96,
        "lower_bound_bytes": 96,
        "buffer_count": 3,
    }
    code, out = judge(VALID.replace("64\nc", "0\nc"), "--json")
    assert code == 1
    assert "overlap" in json.loads(out)["error"]


def test_a_tflite_plan_is_judged(judge):
    good, bad = planned([0, -1, 32, 96, -1, 0]), planned([0, -1, 16, 96, -1, 0])
    assert judge(good, name="plan.tflite")[0] == 0
    code, out = judge(bad, name="plan.tflite")
    assert code == 1
    assert "Buffers 0 `x` and 1 `a` overlap: bytes [16, 32) in steps [0, 1)" in out


def test_a_misaligned_tensor_is_named(judge):
    code, out = judge(planned([0, -1, 33, 112, -1, 0]), name="plan.tflite")
    assert code == 1
    assert "Buffer 1 `a` has offset_bytes=33" in out


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("id,lower,upper,size\na,0,1,8\n", "plan.csv"),
        ("id,lower\n", "plan.csv"),
        ("{}", "plan.json"),
        ("[[1, 8], [-1, 8]]", "plan.json"),
        (chain(), "plan.tflite"),
        (b"TFL3", "plan.tflite"),
    ],
)
def test_what_holds_no_plan_is_bad_input(judge, content, name):
    assert judge(content, name=name)[0] == 2


def test_a_plan_in_json_that_collides_is_invalid(judge, tmp_path, capsys):
    source, plan = tmp_path / "plan.csv", tmp_path / "plan.json"
    source.write_text(VALID)
    assert main(["place", str(source), "-o", str(plan)]) == 0
    capsys.readouterr()
    values = json.loads(plan.read_text())
    for buffer in values["buffers"]:
        buffer["offset_bytes"] = 0
    values["peak_bytes"] = 64
    assert judge(json.dumps(values), name="plan.json")[0] == 1


def test_what_plan_writes_is_valid(judge, tmp_path, capsys):
    source = tmp_path / "model.tflite"
    source.write_bytes(chain())
    target = tmp_path / "planned.tflite"
    assert main(["place", str(source), "-o", str(target)]) == 0
    capsys.readouterr()
    assert judge(target.read_bytes(), name="again.tflite")[0] == 0
