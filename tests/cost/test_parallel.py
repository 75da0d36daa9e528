"""What `tightship cost --parallel` says."""

from tests.planner.parallel.test_parallel_plan import branches
from tightship.cost.parallel import parallel_json, parallel_report, parallel_rows


def test_branches_take_more_or_wait_for_each_other():
    serial, free, along_two, *_ = parallel_rows(branches(2, 4))
    assert (serial.arena_bytes, serial.longest_path) == (3 * 64, 9)
    assert serial.added_edges == 1
    assert (free.arena_bytes, free.added_edges, free.longest_path) == (4 * 64, 0, 5)
    assert along_two == free.__class__("sharing along 2 paths only", 4 * 64, 0, 5)


def test_rows_are_a_table_and_json():
    rows = parallel_rows(branches(2, 4))
    lines = parallel_report(rows).splitlines()
    assert max(map(len, lines)) <= 100
    assert any("one step after another" in line and "192 B" in line for line in lines)
    assert parallel_json(rows)[0]["arena_bytes"] == 192
