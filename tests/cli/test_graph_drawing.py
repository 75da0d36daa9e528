"""Networks drawn by `tightship view --graph` and `tightship cost --graph`."""

import json
from pathlib import Path

import pytest

import tightship
from tests.models import conv_net, if_model
from tests.small_models import dense
from tightship.cli import main


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "open.onnx").write_bytes(dense()[0])
    (tmp_path / "net.onnx").write_bytes(conv_net().SerializeToString())
    (tmp_path / "if.onnx").write_bytes(if_model().SerializeToString())
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,128\n")


def printed(capsys, *arguments):
    assert main(list(arguments)) == 0
    return json.loads(capsys.readouterr().out)


def test_a_page_and_a_still_picture_of_the_network(capsys):
    assert main(["view", "net.onnx", "--graph"]) == 0
    assert capsys.readouterr().out == "graph.html\n"
    assert 'id="network">' in Path("graph.html").read_text()
    assert main(["view", "net.onnx", "--graph", "--step", "0", "-o", "graph.svg"]) == 0
    assert "free boxes" in Path("graph.svg").read_text()


def test_the_network_of_a_plan_that_was_saved_is_the_same(capsys):
    values = printed(capsys, "view", "open.onnx", "--shape", "batch=4", "--graph", "--json")
    assert not Path("graph.html").exists()
    assert main(["plan", "open.onnx", "--shape", "batch=4", "-o", "plan.json"]) == 0
    capsys.readouterr()
    assert printed(capsys, "view", "plan.json", "--graph", "--json") == values
    assert main(["prepare", "open.onnx", "--shape", "batch=4", "-o", "open.tship"]) == 0
    capsys.readouterr()
    prepared = printed(capsys, "view", "open.tship", "--graph", "--json")
    assert prepared["edges"] == values["edges"]


def test_every_value_that_a_step_reads_is_made_before():
    for name in ("open.onnx", "net.onnx", "if.onnx"):
        shapes = {"batch": 4} if name == "open.onnx" else {}
        tightship.plan(name, shapes=shapes).save("graph.json", graph=True)
        values = json.loads(Path("graph.json").read_text())
        assert values["edges"]
        inputs = [node["node"] for node in values["nodes"] if node["operator"] == "input"]
        for edge in values["edges"]:
            assert edge["from"] < edge["to"] or edge["from"] in inputs
        read = {edge["to"] for edge in values["edges"]}
        steps = [node for node in values["nodes"] if node["step"] is not None]
        assert all(node["node"] in read for node in steps if node["reads"])


def test_a_training_step_has_its_backward_pass_beside_it(capsys):
    values = printed(capsys, "cost", "open.onnx", "--batch", "4", "--training", "--graph", "--json")
    names = {value["name"] for value in values["graph"]["values"]}
    assert {"r", "d(r)"} <= names
    assert main(["cost", "open.onnx", "--batch", "4", "--training", "--graph", "-o", "t.svg"]) == 0
    assert "training" in Path("t.svg").read_text()
    plan = tightship.plan("open.onnx", shapes={"batch": 4}, loss="squared_error",
                          optimizer=tightship.Sgd(0.1))  # fmt: skip
    plan.save("step.svg", graph=True)
    assert "tn-edge" in Path("step.svg").read_text()


def test_a_plan_prints_as_json_without_a_picture(capsys):
    values = printed(capsys, "view", "net.onnx", "--json")
    assert values["steps"][0]["writes"]
    assert not Path("plan.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["view", "buffers.csv", "--graph"], "`buffers.csv` has no steps"),
        (["view", "net.onnx", "--step", "1"], "`--step` is for `--graph`"),
        (["view", "net.onnx", "--graph", "--step", "99"], "Step 99 does not exist"),
        (["view", "net.onnx", "--graph", "--step", "-1"], "`-1` is not a step"),
        (["view", "net.onnx", "--graph", "--step", "x"], "`x` is not a step"),
        (["view", "net.onnx", "--graph", "-o", "a.png"], "choose .html or .svg"),
        (["view", "net.onnx", "--graph", "--diff", "net.onnx"], "`--diff` does not go with"),
        (["view", "net.onnx", "--json", "--diff", "net.onnx"], "write it as .html, not JSON"),
        (["cost", "net.onnx", "--step", "1"], "`--step` is for `--graph`"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(capsys, arguments, said):
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert said in capsys.readouterr().err


def test_a_plan_of_an_earlier_version_is_refused(capsys):
    assert main(["plan", "net.onnx", "-o", "plan.json"]) == 0
    values = json.loads(Path("plan.json").read_text())
    for step in values["steps"]:
        del step["reads"], step["writes"]
    Path("plan.json").write_text(json.dumps(values))
    assert main(["view", "plan.json", "--graph"]) == 2
    assert "write it again with `tightship plan MODEL" in capsys.readouterr().err


def test_a_graph_is_not_saved_under_any_name():
    with pytest.raises(tightship.InputError, match=r"\.html, \.svg, \.json"):
        tightship.plan("net.onnx").save("graph.csv", graph=True)
