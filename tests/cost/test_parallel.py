"""Output of `tightship cost --parallel`."""

import pytest

from tests.models import filled, parse
from tightship.cost import cost_of
from tightship.cost.parallel import parallel_json, parallel_report, parallel_rows
from tightship.frontend.onnx import read_bytes

BRANCHES = """net (float[8, 8] x) => (float[8, 8] y) {
    a1 = MatMul (x, w)
    a2 = MatMul (a1, w)
    b1 = MatMul (x, w)
    b2 = MatMul (b1, w)
    y = Add (a2, b2)
}"""


@pytest.fixture
def rows():
    graph = read_bytes(parse(BRANCHES, w=filled(8, 8)).SerializeToString())
    return {row.plan: row for row in parallel_rows(cost_of(graph, "branches"))}


def test_branches_take_more_or_wait_for_each_other(rows):
    serial, free = rows["inference, one after another"], rows["inference, as soon as they can"]
    assert (serial.added_edges, serial.longest_path) == (1, 5)
    assert (free.added_edges, free.longest_path) == (0, 3)
    assert free.arena_bytes == serial.arena_bytes + 256


def test_a_training_step_has_rows_of_its_own(rows):
    trained = rows["training, as soon as they can"]
    assert trained.longest_path > rows["inference, as soon as they can"].longest_path
    assert trained.added_edges == 0
    assert rows["training, sharing along 2 paths"].arena_bytes >= trained.arena_bytes


def test_rows_are_a_table_and_json(rows):
    made = tuple(rows.values())
    lines = parallel_report(made).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum("as soon as they can" in line for line in lines) == 2
    assert [row["arena_bytes"] for row in parallel_json(made)] == [r.arena_bytes for r in made]
