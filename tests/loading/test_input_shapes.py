"""Shapes by input and lengths by dimension, of inputs as language models declare them."""

import json
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tightship
from tightship import cluster
from tightship.cli import main
from tightship.cluster.node_file import source_of
from tightship.errors import InputError
from tightship.loading.input_shapes import input_shapes

DECODER = {
    "ids": ("batch", "sequence"),
    "mask": ("batch", "past + sequence"),
    "past.0": ("batch", 8, "past", 4),
    "past.1": ("batch", 8, "past", 4),
    "scale": (),
}
LENGTHS = {"batch": 1, "sequence": 3, "past": 10}


def test_named_lengths_give_every_input_its_shape_and_sums_are_computed():
    found = input_shapes(DECODER, LENGTHS)
    assert found == {
        "ids": (1, 3), "mask": (1, 13), "past.0": (1, 8, 10, 4), "past.1": (1, 8, 10, 4)
    }  # fmt: skip


def test_a_shape_of_one_length_is_a_dimensions_unless_an_input_has_the_name():
    assert input_shapes({"x": ("n",)}, {"n": (5,)}) == {"x": (5,)}
    assert input_shapes({"n": ("n",), "x": ("n", 2)}, {"n": (5,)}) == {"n": (5,)}
    assert input_shapes({"n": ("n",), "x": ("n", 2)}, {"n": 5}) == {"n": (5,), "x": (5, 2)}


def test_shapes_by_input_stay_and_complete_the_others():
    assert input_shapes(DECODER, {"ids": [1, 3]}) == {"ids": (1, 3)}
    found = input_shapes(DECODER, {"ids": [2, 3], "past": 7})
    assert found["mask"] == (2, 10)
    assert found["past.1"] == (2, 8, 7, 4)
    assert input_shapes(DECODER, None) == input_shapes(DECODER, {}) == {}


def test_a_name_with_a_hyphen_is_not_a_difference():
    declared = {"x": ("batch-size", "batch", "size")}
    assert input_shapes(declared, {"x": (1, 5, 3)}) == {"x": (1, 5, 3)}
    assert input_shapes(declared, {"batch-size": 1, "batch": 5, "size": 3}) == {"x": (1, 5, 3)}


def test_an_expression_may_be_named_itself():
    assert input_shapes({"mask": ("past + new",)}, {"past + new": 9}) == {"mask": (9,)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mask": (1, 5), "past.0": (1, 8, 10, 4), "ids": (1, 1)},
         "`mask` was given the length 5 in dimension 1, which the file declares as `past + "
         "sequence`: that is 11 with `past` 10, `sequence` 1"),
        ({**LENGTHS, "mask": (1, 5)}, "that is 13 with"),
        ({"batch": 2, "ids": (1, 3)}, "`batch` was given the length 2, but it is 1"),
        ({"batch": 2, "ids": (1, 3)}, "in the shape of input `ids`, 1x3; give one of them"),
        ({"ids": (1, 3), "past.0": (2, 8, 10, 4)},
         "Dimension `batch` is 1 in the shape of input `ids`, 1x3, but 2 in that of `past.0`, "
         "2x8x10x4; give both the same."),
        ({"seq": 3}, "no input and no dimension `seq`; its inputs are: `ids`, .*its named "
         "dimensions: `batch`, `past`, .*`sequence`"),
        ({"batch": 1}, r"`sequence`, has no length; .*shapes=\{'batch': 1, 'sequence': 1\}"),
        ({"batch": 1, "sequence": 3}, r"`past \+ sequence`, has no length; .*'past': 1"),
        ({**LENGTHS, "batch": -1}, "`batch` was given the length -1; the least is 0"),
    ],
)  # fmt: skip
def test_contradictions_and_gaps_are_refused_by_name(given, said):
    with pytest.raises(InputError, match=said if "\\" in said or ".*" in said else re.escape(said)):
        input_shapes(DECODER, given)


def test_a_dimension_without_a_name_wants_the_whole_shape():
    with pytest.raises(InputError, match="1 of input `x`, `\\?`, has no length; give the"):
        input_shapes({"x": ("n", None)}, {"n": 1})


def test_a_computed_length_below_zero_is_refused():
    with pytest.raises(InputError, match="`n - 4`, would be -1"):
        input_shapes({"x": ("n", "n - 4")}, {"n": 3})


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """A model of two inputs, one of which has the sum of two lengths."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", 4])
    past = helper.make_tensor_value_info("past", TensorProto.FLOAT, ["batch", "old", 4])
    mask = helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["batch", "old + seq", 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["all"], axis=1),
        helper.make_node("Mul", ["all", "mask"], ["masked"]),
        helper.make_node("ReduceSum", ["masked"], ["y"], keepdims=0),
    ]
    path = tmp_path_factory.mktemp("model") / "decoder.onnx"
    graph = helper.make_graph(nodes, "decoder", [x, past, mask], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


NAMED = {"batch": 2, "seq": 1, "old": 3}
SHAPES = {"x": (2, 1, 4), "past": (2, 3, 4), "mask": (2, 4, 1)}


def test_every_way_of_loading_takes_lengths_by_dimension(decoder, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "cache"))
    ones = {name: np.ones(shape, np.float32) for name, shape in SHAPES.items()}
    planned = tightship.plan(decoder, shapes=NAMED)
    assert planned.peak_bytes == tightship.plan(decoder, shapes=SHAPES).peak_bytes
    for share in (False, True):
        with tightship.load(decoder, shapes=NAMED, share=share) as model:
            assert {name: shape for name, (_, shape) in model.input_types.items()} == SHAPES
            assert model.run(ones)["y"] == 32
    tightship.prepare(decoder, tmp_path / "decoder.tship", shapes=[NAMED, {**NAMED, "old": 0}])
    for shapes in (SHAPES, NAMED, {"old": 3}):
        with tightship.load(tmp_path / "decoder.tship", shapes=shapes) as model:
            assert model.run(ones)["y"] == 32
    first = tightship.plan(tmp_path / "decoder.tship", shapes={"old": 0})
    assert first.inputs["mask"] == "2x1x1 float32"
    with pytest.raises(InputError, match=r"not for .*`past` \[2, 9, 4\], `mask` \[2, 10, 1\]"):
        tightship.load(tmp_path / "decoder.tship", shapes={"old": 9})


def test_the_command_line_takes_them_as_shapes_of_one_axis(decoder, capsys):
    options = [f"--shape={name}={length}" for name, length in NAMED.items()]
    assert main(["plan", str(decoder), "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"].keys() == SHAPES.keys()
    assert main(["plan", str(decoder), *options, "--shape=mask=2x9x1"]) == 2
    assert "declares as `old + seq`: that is 4" in capsys.readouterr().err


def test_a_refusal_names_the_dimensions_instead_of_every_input(decoder):
    with pytest.raises(InputError, match=r"--shape batch=1 --shape seq=1 .*`shapes=\{'batch': 1, "):
        tightship.plan(decoder)


def test_a_cluster_takes_lengths_by_dimension(decoder):
    needs = cluster.requirements(decoder, shapes=NAMED)
    assert needs == cluster.requirements(decoder, shapes=SHAPES)
    assert source_of(decoder, NAMED, 1) == source_of(decoder, SHAPES, 1)
    one, other = (cluster.split(decoder, ["64MiB"], shapes=each).stages for each in (NAMED, SHAPES))
    assert [stage.plan.peak_bytes for stage in one] == [stage.plan.peak_bytes for stage in other]


def test_a_limit_with_named_lengths_is_refused_with_the_limit_that_would_do(decoder, capsys):
    options = [f"--shape={name}={length}" for name, length in NAMED.items() if name != "seq"]
    options += ["--shape=x=2x1x4", "--max-memory=1KiB"]
    assert main(["plan", str(decoder), *options]) == 1
    assert "Raise the limit" in capsys.readouterr().err
