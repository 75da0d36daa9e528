"""Problems with constraints from the shell."""

import json

import numpy as np
import pytest

from tests.planner.constrained.problems import column
from tests.planner.problems import problem
from tightship.cli import main
from tightship.planner import Bank, Constraints, place
from tightship.planner.format import read_plan, write_plan

GAPS = "id,lower,upper,size,gaps,pinned\na,0,6,8,2-4,\nb,2,4,8,,8\nc,2,4,8,,\n"


@pytest.fixture
def banked(tmp_path):
    banks = (Bank("sram", 16), Bank("dram", None, 3))
    allowed = np.array([[True, True], [False, True]])
    made = problem((8, 0, 2, 1), (9, 0, 2, 1), constraints=Constraints(
        column(-1, -1), banks=banks, allowed_banks=allowed))  # fmt: skip
    path = tmp_path / "banks.json"
    write_plan(path, place(made))
    return path


def test_a_csv_with_gaps_and_pins_is_planned_and_verified(tmp_path, capsys):
    path, out = tmp_path / "buffers.csv", tmp_path / "plan.csv"
    path.write_text(GAPS)
    assert main(["place", str(path), "--capacity", "16", "-o", str(out)]) == 0
    assert "peak 16 bytes" in capsys.readouterr().out
    assert main(["verify", str(out)]) == 0
    out.write_text(out.read_text().replace("b,2,4,8,,8,8", "b,2,4,8,,8,16"))
    assert main(["verify", str(out)]) == 1
    assert "1 `b` is pinned to byte 8; the plan has it at 16" in capsys.readouterr().out


def test_banks_are_distinguished(banked, tmp_path, capsys):
    out = tmp_path / "again.json"
    assert main(["place", str(banked), "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "bank `sram`: 8 bytes, of 16" in printed
    assert "bank `dram`: 9 bytes, no limit" in printed
    assert "cost 27" in printed
    assert read_plan(out).bank.tolist() == [0, 1]
    assert main(["verify", str(out)]) == 0
    assert "2 buffers in 17 bytes" in capsys.readouterr().out


def test_json_names_the_bank_of_each_buffer(banked, capsys):
    assert main(["place", str(banked), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["bank"], said["bank_peak_bytes"], said["cost"]) == ([0, 1], [8, 9], 27)
