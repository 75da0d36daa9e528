"""Headers of C, banks and time limits of `tightship place`."""

import json
import shlex

import pytest

from tightship.cli import main, place_command
from tightship.planner.format import read_plan

ROWS = "id,lower,upper,size\na,0,3,512\nb,1,4,1024\nc,3,6,512\n"


@pytest.fixture
def buffers(tmp_path):
    path = tmp_path / "buffers.csv"
    path.write_text(ROWS)
    return path


def run(capsys, *arguments):
    code = main(["place", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_header_has_the_command_that_makes_it_again(buffers, tmp_path, capsys):
    header = tmp_path / "my plan.h"
    options = ("--bank", "sram=1KiB", "--bank", "dram", "--minimize", "--time-limit", "9",
               "--threads", "2")  # fmt: skip
    assert run(capsys, buffers, *options, "-o", header)[0] == 0
    text = header.read_text()
    command = next(line for line in text.splitlines() if "Made by" in line)
    words = shlex.split(command.partition(": ")[2])
    header.unlink()
    assert words[0] == "tightship"
    assert main(words[1:]) == 0
    assert header.read_text() == text


@pytest.mark.parametrize("options", [("--capacity", "2KiB"), ("--order",)])
def test_a_header_tells_of_other_options_too(buffers, tmp_path, capsys, options):
    plan, header = tmp_path / "plan.json", tmp_path / "plan.h"
    assert run(capsys, buffers, "-o", plan)[0] == 0
    given = (*options, plan) if options == ("--order",) else options
    assert run(capsys, buffers, *given, "-o", header)[0] == 0
    assert f" {options[0]} " in header.read_text()


def test_an_unknown_form_names_those_that_are_written(buffers, capsys):
    code, _, err = run(capsys, buffers, "-o", "plan.hpp")
    assert code == 2
    assert ".h," in err


def test_banks_are_filled_in_the_order_in_which_they_are_named(buffers, tmp_path, capsys):
    out = tmp_path / "plan.json"
    code, text, _ = run(capsys, buffers, "--bank", "sram=1KiB", "--bank", "dram=8MiB", "-o", out)
    assert code == 0
    assert "bank `sram`: 1024 bytes, of 1024" in text
    assert read_plan(out).bank_peak_bytes[0] == 1024
    assert main(["verify", str(out)]) == 0
    code, text, _ = run(capsys, buffers, "--bank", "sram=1536", "--bank", "dram")
    assert code == 0
    assert "bank `dram`: 0 bytes, no limit" in text
    assert "cost 0" in text


def test_banks_that_are_too_small_are_proved_to_be(buffers, capsys):
    code, text, _ = run(capsys, buffers, "--bank", "a=512", "--bank", "b=512", "--json")
    assert (code, json.loads(text)["status"]) == (1, "infeasible")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--bank", "=1KiB"), "is not a bank"),
        (("--bank", "a="), "is not a bank"),
        (("--bank", "a=much"), "is not an amount of memory"),
        (("--time-limit", "0"), "is not a time"),
    ],
)
def test_what_is_no_bank_or_time_is_refused(buffers, capsys, options, words):
    with pytest.raises(SystemExit) as ended:
        run(capsys, buffers, *options)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--bank", "a=1KiB", "--bank", "a=2KiB"), "`--bank a` is given twice"),
        (("--bank", "a=1KiB", "--capacity", "1KiB"), "give each bank its capacity"),
        (("--bank", "a", "-o", "plan.csv"), "A CSV holds no banks"),
        (("--bank", "a", "--order", "plan.csv"), "leave out `--bank`"),
        (("--time-limit", "1", "--order", "plan.csv"), "leave out `--time-limit`"),
    ],
)
def test_options_that_do_not_go_together_are_refused(buffers, capsys, monkeypatch, options, words):
    monkeypatch.setattr(place_command, "place", None)  # before any search
    code, _, err = run(capsys, buffers, *options)
    assert code == 2
    assert words in err


def test_a_file_with_banks_keeps_them(buffers, tmp_path, capsys):
    out = tmp_path / "plan.json"
    assert run(capsys, buffers, "--bank", "a", "-o", out)[0] == 0
    code, _, err = run(capsys, out, "--bank", "b")
    assert code == 2
    assert "banks of its own (`a`)" in err


def test_a_time_limit_is_refused_for_buffers_beyond_exact_search(tmp_path, capsys):
    path = tmp_path / "many.csv"
    path.write_text("id,lower,upper,size\n" + "".join(f"{i},0,1,1\n" for i in range(5000)))
    code, _, err = run(capsys, path, "--time-limit", "1")
    assert code == 2
    assert "fewer than 5,000 buffers; the problem has 5,000" in err
