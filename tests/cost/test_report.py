import json

import numpy as np
import pytest

from tests.models import filled, parse
from tests.zoo.inception_bn import inception_bn
from tightship.cost import cost_of
from tightship.cost.report import report, to_json
from tightship.frontend.onnx import read_bytes


def cost(name="net.onnx", **options):
    return cost_of(read_bytes(inception_bn(2, 96, 4).model), name, **options)


@pytest.mark.parametrize("name", ["net.onnx", "n" * 300, "tab\tnew\nline"])
def test_every_line_fits_100_columns(name):
    lines = report(cost(name)).splitlines()
    assert max(map(len, lines)) <= 100
    assert "graph bytes" in report(cost()).splitlines()[0]


def test_training_has_its_row_unless_only_the_forward_pass_is_asked_for():
    assert "training, blocks" in report(cost())
    assert "training" not in report(cost(forward_only=True))
    rows = to_json(cost())["training"]
    assert [row["granularity"] for row in rows] == ["nodes", "blocks"]
    assert "training" not in to_json(cost(forward_only=True))


def test_why_there_is_no_training_is_said_in_its_row():
    text = "net (float[2,8] x) => (float y) { h = MatMul (x, w) y = ReduceProd (h, n) }"
    model = parse(text, w=filled(8, 200), n=np.array([0])).SerializeToString()
    made = cost_of(read_bytes(model), "net")
    assert "training: The gradient of node" in report(made)
    assert max(map(len, report(made).splitlines())) <= 100
    assert to_json(made)["training"] is None
    assert "ReduceProd" in to_json(made)["training_refusal"]


def test_an_arena_whose_alignment_takes_more_than_its_values_saves_nothing():
    text = "net (float[4,6] x) => (float[4] y) { h = MatMul (x, w) y = ReduceSum (h, n) }"
    model = parse(text, w=filled(6, 3), n=np.array([1])).SerializeToString()
    assert "saves" in report(cost_of(read_bytes(model), "net", forward_only=True))


def test_json_holds_the_columns_in_bytes():
    made = cost()
    values = json.loads(json.dumps(to_json(made)))
    assert [row["granularity"] for row in values["inference"]] == ["nodes", "blocks"]
    assert values["inference"][0]["arena_bytes"] == made.cost.columns.arena_bytes
    live = values["live_at_peak"]
    assert sorted((each["size_bytes"] for each in live), reverse=True) == [
        each["size_bytes"] for each in live
    ]
    assert all(e["start_step"] <= values["peak_step"] < e["stop_step"] for e in live)


def test_ten_buffers_at_the_peak_are_listed_and_the_rest_counted():
    sums = "\n".join(f"r{i} = Relu (x)" for i in range(14))
    names = ", ".join(f"r{i}" for i in range(14))
    text = f"net (float[64] x) => (float[64] y) {{ {sums} y = Sum ({names}) }}"
    made = cost_of(read_bytes(parse(text).SerializeToString()), "net")
    assert len(to_json(made)["live_at_peak"]) == 10
    assert "and 4 smaller" in report(made)


def test_sizes_that_depend_on_data_are_named():
    text = "net (float[8] x) => (int64[1, n] y) { y = NonZero (x) }"
    made = cost_of(read_bytes(parse(text).SerializeToString()), "net")
    assert "not counted, as their sizes depend on data: `y`" in report(made)
    assert to_json(made)["unsized"] == ["y"]


def test_a_graph_of_views_alone_takes_nothing():
    text = "net (float[8] x) => (float[8] y) { y = Identity (x) }"
    made = cost_of(read_bytes(parse(text, w=filled(1)).SerializeToString()), "net")
    assert made.cost.columns.arena_bytes == 0
    assert "0 B arena" in report(made)
