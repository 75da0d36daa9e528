"""Promises of `prepare`, `run_node` and a prepared model beyond ONNX's suite."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, helper, numpy_helper, parser

import tightship.backend
from tightship.errors import CapacityError, InputError


def model(text: str) -> ModelProto:
    header = '<ir_version: 9, opset_import: ["": 20]>'
    return parser.parse_model(f"{header} g {text}")


def floats(*lengths: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(lengths).astype(np.float32)


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=12))
def test_one_preparation_serves_every_length(lengths: list[int]) -> None:
    rep = tightship.backend.prepare(model("(float[N] x) => (float[N] y) { y = Relu(x) }"))
    for length in lengths:
        x = floats(length)
        np.testing.assert_array_equal(rep.run([x])[0], np.maximum(x, 0))


def test_a_model_is_loaded_once_for_each_set_of_shapes() -> None:
    rep = tightship.backend.prepare(model("(float[N] x) => (float[N] y) { y = Relu(x) }"))
    first = rep.model_for([floats(3)])
    assert rep.model_for({"x": floats(3)}) is first
    assert rep.model_for([floats(4)]) is not first


def test_old_shapes_are_dropped_when_many_are_met() -> None:
    rep = tightship.backend.prepare(model("(float[N] x) => (float[N] y) { y = Relu(x) }"))
    first = rep.model_for([floats(1)])
    for length in range(2, tightship.backend.MODELS_MAX + 2):
        rep.run([floats(length)])
    assert rep.model_for([floats(1)]) is not first


def test_an_initializer_is_no_input_even_where_it_is_listed_as_one() -> None:
    proto = model("(float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    x = floats(2)
    np.testing.assert_array_equal(tightship.backend.run_model(proto, [x])[0], x + 1)


def test_inputs_are_counted() -> None:
    rep = tightship.backend.prepare(model("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    with pytest.raises(InputError, match="2 inputs were given; the model has 1: x"):
        rep.run([floats(2), floats(2)])


def test_outputs_come_in_the_order_of_the_model() -> None:
    proto = model("(float[2] x) => (float[2] b, float[2] a) { a = Neg(x) b = Abs(x) }")
    x = floats(2)
    b, a = tightship.backend.run_model(proto, {"x": x})
    np.testing.assert_array_equal(a, -x)
    np.testing.assert_array_equal(b, np.abs(x))


def test_a_sequence_keeps_values_whose_bytes_the_arena_reuses() -> None:
    proto = model(
        "(float[4] x) => (float[4] y) {"
        " a = Relu(x)  s = SequenceConstruct(a)"
        " b = Sqrt(x)  c = Exp(b)  d = Mul(c, c)"
        " zero = Constant<value: tensor = int64 {0}>()"
        " e = SequenceAt(s, zero)  y = Add(d, e) }"
    )
    x = np.array([1, 2, 3, 4], np.float32)
    (y,) = tightship.backend.run_model(proto, [x])
    np.testing.assert_allclose(y, np.exp(np.sqrt(x)) ** 2 + x, rtol=1e-5)


def test_an_output_made_outside_the_plan_survives_the_next_run() -> None:
    proto = model(
        "(float[4] x) => (seq(float[4]) s) { a = Exp(x)  b = Neg(a)  s = SequenceConstruct(b) }"
    )
    rep = tightship.backend.prepare(proto)
    x = floats(4)
    ((first,),) = rep.run([x])
    rep.run([x + 1])
    np.testing.assert_allclose(first, -np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_old_sum_puts_its_second_operand_where_its_attribute_says(axis: int) -> None:
    text = f"""<ir_version: 3, opset_import: ["": 6]> g
    (float[3,3,3,3] x, float[3,3,1,1] w, float[3] b) => (float[3,3,3,3] y, float[3,3,3,3] z) {{
      c = Conv (x, w)  y = Add <broadcast = 1, axis = {axis}> (c, b)
      z = Add <broadcast = 1, axis = {axis}> (x, b)
    }}"""
    x, w, b = floats(3, 3, 3, 3), floats(3, 3, 1, 1), floats(3)
    y, z = tightship.backend.run_model(parser.parse_model(text), [x, w, b])
    placed = b.reshape([3] + [1] * (3 - axis))
    np.testing.assert_allclose(z, x + placed, rtol=1e-6)
    convolved = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])
    np.testing.assert_allclose(y, convolved + placed, rtol=1e-4, atol=1e-5)


def test_options_are_those_of_load() -> None:
    proto = model("(float[4] x) => (float[4] y) { y = Relu(x) }")
    with pytest.raises(CapacityError):
        tightship.backend.prepare(proto, max_memory=1)
    rep = tightship.backend.prepare(proto, without=("onednn",))
    assert [step.kernel for step in rep.model_for([floats(4)]).plan.steps] == ["native"]


@pytest.mark.parametrize("device", ["CUDA", "CUDA:1", "cpus"])
def test_the_cpu_is_the_only_device(device: str) -> None:
    assert not tightship.backend.supports_device(device)
    proto = model("(float[4] x) => (float[4] y) { y = Relu(x) }")
    with pytest.raises(InputError, match=f"Unknown device `{device}`"):
        tightship.backend.prepare(proto, device)


def test_a_model_nothing_can_run_is_not_compatible() -> None:
    proto = model("(float[4] x) => (float[4] y) { y = Relu(x) }")
    assert tightship.backend.is_compatible(proto, "CPU:0")
    proto.graph.node[0].op_type = "Rolu"
    assert not tightship.backend.is_compatible(proto)


def test_a_node_runs_in_the_opset_that_is_asked_for() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"])
    x = floats(2, 3, 4)
    (newest,) = tightship.backend.run_node(node, [x])
    np.testing.assert_allclose(newest.sum(-1), 1, rtol=1e-5)
    (old,) = tightship.backend.run_node(node, [x], opset_version=11)
    np.testing.assert_allclose(old.sum((1, 2)), 1, rtol=1e-5)


def test_a_node_of_another_domain_runs() -> None:
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.0)
    x = floats(5)
    np.testing.assert_array_equal(tightship.backend.run_node(node, {"x": x})[0], x > 0)


def test_a_node_takes_sequences_and_empty_optionals() -> None:
    length = helper.make_node("SequenceLength", ["s"], ["y"])
    assert tightship.backend.run_node(length, [[floats(2), floats(3)]])[0] == 2
    has_element = helper.make_node("OptionalHasElement", ["x"], ["y"])
    assert not tightship.backend.run_node(has_element, [None])[0]


def test_a_node_takes_strings() -> None:
    node = helper.make_node("StringConcat", ["a", "b"], ["y"])
    texts = np.array(["ab", "c"]), np.array(["d", "é"], object)
    (joined,) = tightship.backend.run_node(node, texts, opset_version=20)
    assert joined.tolist() == ["abd", "cé"]


def test_importing_the_package_does_not_import_onnx() -> None:
    code = "import sys, tightship; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_model_given_is_not_changed() -> None:
    proto = model("(float[N] x) => (float[N] y) { y = Relu(x) }")
    before = proto.SerializeToString()
    tightship.backend.run_model(proto, [floats(3)])
    assert proto.SerializeToString() == before
