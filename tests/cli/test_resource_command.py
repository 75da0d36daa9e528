import json

import pytest

from tightship.cli import main
from tightship.resource.settings import settings_from


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([[number, 48] for number in range(1, 501)] + [[501, 70_000]]))
    return path


def profile(capsys, *arguments):
    code = main(["resource", "profile", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_parts_the_outcomes_and_what_sets_them_are_printed(capsys, trace_file):
    code, out, _ = profile(capsys, trace_file)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("trace.json: at most 91.8 KiB live")
    first = [line.split()[0] for line in lines if line]
    assert [word for word in first if word in ("slab", "bump,")] == ["slab", "bump,"]
    assert {"recommended", "default", "without"} <= set(first)
    assert "slabs=((48, " in lines[-1]
    given = dict(line.strip().split("=") for line in lines if "TIGHTSHIP_" in line)
    assert [block for block, _ in settings_from(given).slabs] == [48]


def test_json_says_the_same_in_bytes(capsys, trace_file):
    code, out, _ = profile(capsys, trace_file, "--size", "16MiB", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["region_bytes"] == 16 << 20
    (slab,) = said["slabs"]
    assert (slab["block_bytes"], slab["peak_count"], slab["request_count"]) == (48, 500, 500)
    assert slab["share"] + said["rest_share"] == pytest.approx(1)
    assert settings_from(said["environment"]).slabs == ((48, slab["share"]),)
    assert said["outcomes"]["recommended"]["peak_live_bytes"] == 500 * 48 + 70_000
    assert said["outcomes"]["default"]["refused_count"] == 0


def test_a_region_that_is_too_small_is_reported_by_the_exit_code(capsys, trace_file):
    code, out, _ = profile(capsys, trace_file, "--size", "64KiB", "--json")
    assert code == 1
    assert json.loads(out)["outcomes"]["recommended"]["refused_count"] > 0


def test_a_file_that_is_no_trace_is_bad_input(capsys, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("[[1, 5], [1, 5]]")
    code, _, err = profile(capsys, path)
    assert code == 2
    assert "block 1 is allocated twice" in err
