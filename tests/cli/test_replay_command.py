import json
import pickle

import pytest

from tightship.cli import main
from tightship.resource.spec import DEFAULTS

PAIRS = [[1, 5000], [2, 100], [-1, 5000], [3, 4000], [-2, 100], [-3, 4000]]


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(PAIRS))
    return path


def run(capsys, *arguments):
    code = main(["replay", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_default_set_is_compared_side_by_side(capsys, trace_file):
    code, out, _ = run(capsys, trace_file)
    assert code == 0
    head, columns, *rows = out.splitlines()
    assert head == "trace.json: 6 operations, at most 4.98 KiB live"
    assert columns.split()[0] == "resource"
    assert [row.split()[0] for row in rows] == list(DEFAULTS)
    assert len({len(row) for row in rows}) == 1


def test_json_has_amounts_in_bytes(capsys, trace_file):
    specs = ("host", "limit:1MiB/pool:64KiB")
    code, out, _ = run(capsys, trace_file, "--json", *(f"--resource={spec}" for spec in specs))
    assert code == 0
    host, pool = json.loads(out)["resources"]
    assert (host["resource"], pool["resource"]) == specs
    assert host["peak_live_bytes"] == pool["peak_live_bytes"] == 5100
    assert host["peak_held_bytes"] == 3 * 4096
    assert pool["peak_held_bytes"] == 64 << 10
    assert host["held_ratio"] == 3 * 4096 / 5100


@pytest.mark.parametrize("suffix", [".html", ".svg"])
def test_a_picture_is_written_beside_the_table(capsys, trace_file, tmp_path, suffix):
    target = tmp_path / f"replay{suffix}"
    code, out, _ = run(capsys, trace_file, "-o", target, "--resource=host", "--resource=malloc")
    assert code == 0
    assert out.startswith("trace.json: 6 operations")
    page = target.read_text()
    assert all(words in page for words in ("host</tspan>", "malloc</tspan>", "6 operations"))


def test_a_picture_of_another_kind_is_bad_usage(capsys, trace_file, tmp_path):
    code, _, err = run(capsys, trace_file, "-o", tmp_path / "replay.png")
    assert code == 2
    assert "`replay.png`" in err


def test_every_resource_has_a_time(capsys, trace_file):
    code, out, _ = run(capsys, trace_file, "--json")
    assert code == 0
    assert all(each["ns_per_operation"] > 0 for each in json.loads(out)["resources"])


def test_what_a_resource_refuses_is_counted_and_the_exit_code_says_so(capsys, trace_file):
    code, out, _ = run(capsys, trace_file, "--json", "--resource", "limit:5050/host")
    assert code == 1
    assert json.loads(out)["resources"][0]["refused_count"] == 1


def test_logs_and_snapshots_are_read_by_their_name(capsys, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("Thread,Time,Action,Pointer,Size,Stream\n1,2,allocate,0x10,300,0x0\n")
    snapshot = tmp_path / "snapshot.pickle"
    event = {"action": "alloc", "addr": 16, "size": 300}
    snapshot.write_bytes(pickle.dumps({"device_traces": [[event]]}))
    for path in (log, snapshot):
        code, out, _ = run(capsys, path, "--json", "--resource", "host")
        assert code == 0
        assert json.loads(out)["resources"][0]["peak_live_bytes"] == 300


@pytest.mark.parametrize(
    ("resource", "words"),
    [("heap", "Unknown root `heap`"), ("pool:x", "x"), ("limit/host", "limit")],
)
def test_a_resource_that_is_none_is_bad_usage(capsys, trace_file, resource, words):
    code, _, err = run(capsys, trace_file, "--resource", resource)
    assert code == 2
    assert words in err


def test_a_file_that_is_no_trace_is_bad_input(capsys, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("[[1, 5], [1, 5]]")
    code, _, err = run(capsys, path)
    assert code == 2
    assert "block 1 is allocated twice" in err
