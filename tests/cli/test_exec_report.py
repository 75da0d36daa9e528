"""The report of a program that has ended."""

import json

from tightship.cli.exec_report import Ended, report
from tightship.cli.held_memory import Held
from tightship.cli.mapping_kinds import KindBytes

MIB = 1 << 20


def held(data_bytes: int, count: int = 1) -> Held:
    return Held(
        resident_bytes=80 * MIB,
        data_bytes=data_bytes,
        together_resident_bytes=90 * MIB,
        together_data_bytes=110 * MIB,
        process_count=count,
        kinds={"heap": KindBytes(60 * MIB, 50 * MIB)},
    )


def text(capsys, ended: Ended) -> str:
    report(ended, None, is_json=False)
    return capsys.readouterr().err


def test_a_limit_that_was_reached_is_said(capsys) -> None:
    said = text(capsys, Ended(["a"], 1, 1.0, 100 * MIB, held(99 * MIB)))
    assert "99% of the limit of 100.0 MiB: the system may have refused more" in said
    said = text(capsys, Ended(["a"], 1, 1.0, 100 * MIB, held(50 * MIB)))
    assert "50% of the limit of 100.0 MiB; requests that it refused are not in it" in said


def test_several_processes_have_a_row_together(capsys) -> None:
    assert "processes" not in text(capsys, Ended(["a"], 0, 1.0, None, held(MIB)))
    said = text(capsys, Ended(["a"], 0, 1.0, None, held(MIB, 3)))
    assert ["3", "processes", "110.0", "MiB", "90.0", "MiB"] in [
        line.split() for line in said.splitlines()
    ]


def test_a_program_that_ended_at_once_is_said_not_to_have_been_read(capsys) -> None:
    said = text(capsys, Ended(["a"], 0, 0.0, MIB, Held()))
    assert said == "a · exit code 0 after 0.00 s, before it could be read\n"


def test_a_signal_without_a_name_is_a_number(capsys) -> None:
    assert "ended by signal 40" in text(capsys, Ended(["a"], -40, 0.0, None, held(MIB)))


def test_names_with_control_characters_and_long_ones_are_shown_safely(capsys) -> None:
    said = text(capsys, Ended(["a\x1b[2J", "x" * 500], 0, 0.0, None, held(MIB)))
    assert "\x1b" not in said
    assert max(map(len, said.splitlines())) <= 100


def test_json_has_bytes(capsys) -> None:
    report(Ended(["a", "b"], -9, 1.23456, MIB, held(MIB)), None, is_json=True)
    found = json.loads(capsys.readouterr().err)
    assert found["program"] == ["a", "b"]
    assert (found["exit_code"], found["signal"], found["seconds"]) == (None, 9, 1.235)
    assert found["mapping_kinds"] == {"heap": {"data_bytes": 60 * MIB, "resident_bytes": 50 * MIB}}


def test_a_file_that_cannot_be_written_is_named(capsys, tmp_path) -> None:
    report(Ended(["a"], 0, 1.0, None, held(MIB)), str(tmp_path), is_json=True)
    assert str(tmp_path) in capsys.readouterr().err
