import json
import re

import pytest

from tests.processor import needs_avx512
from tests.zoo import light
from tightship.cli import main

MODEL = light.path_of("resnet50")


def run(capsys, *arguments):
    code = main(["plan", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@needs_avx512  # the limit has no room for the buffer of NumPy's BLAS
def test_stages_are_printed_with_their_plans(capsys):
    code, out, _ = run(capsys, MODEL, "--split", "110MiB,90MiB")
    assert code == 0
    assert out.startswith("light_resnet50.onnx: 2 stages, ")
    titles = ["stage", "steps", "budget", "peak", "weights", "arena", "in and out", "runtime"]
    assert [title for title in titles if title not in out] == []
    assert re.search(r"^  1 +0 to \d+ ", out, re.MULTILINE)


@needs_avx512  # the limit has no room for the buffer of NumPy's BLAS
def test_json_has_the_bytes_of_each_stage(capsys):
    code, out, _ = run(capsys, MODEL, "--split", "110MiB,90MiB", "--json")
    values = json.loads(out)
    assert code == 0
    assert [stage["budget_bytes"] for stage in values["stages"]] in (
        [110 << 20, 90 << 20],
        [90 << 20, 110 << 20],
    )
    for stage in values["stages"]:
        parts = ("weights_bytes", "arena_bytes", "io_bytes", "runtime_bytes")
        assert stage["peak_bytes"] == sum(stage[part] for part in parts) <= stage["budget_bytes"]
    assert values["stages"][1]["received_bytes"] == values["crossing_bytes"]


def test_budgets_that_hold_nothing_are_proved_not_to_fit(capsys):
    code, out, err = run(capsys, MODEL, "--split", "20MiB,20MiB")
    assert (code, out) == (1, "")
    assert "cannot be cut into stages for nodes of 20.0 MiB, 20.0 MiB" in err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--max-memory", "1GiB"), "`--max-memory` does not go with `--split`"),
        (("--capacity", "1GiB"), "`--capacity` does not go with `--split`"),
        (("-o", "plan.svg"), "`--output` does not go with `--split`"),
    ],
)
def test_options_that_do_not_go_together_are_refused(capsys, option, said):
    code, _, err = run(capsys, MODEL, "--split", "1GiB", *option)
    assert code == 2
    assert said in err


def test_buffers_are_not_split(capsys, tmp_path):
    path = tmp_path / "buffers.csv"
    path.write_text("id,lower,upper,size\n0,0,1,8\n")
    code, _, err = run(capsys, path, "--split", "1GiB")
    assert code == 2
    assert "`--split` is for a model" in err


def test_what_is_not_an_amount_is_refused(capsys):
    with pytest.raises(SystemExit):
        run(capsys, MODEL, "--split", "1GiB,many")
    assert "`many` is not an amount of memory" in capsys.readouterr().err
