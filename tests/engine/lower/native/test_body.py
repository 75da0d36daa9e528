"""Constants of bodies, packed among the weights of the program around them."""

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

import tightship
from tests.models import filled, gated_scan, parse

FEEDS = {"h": filled(4, 16), "x": filled(6, 4, 16)}


def assert_as_onnxruntime(proto: ModelProto) -> list[str]:
    """Compare a run with onnxruntime's; return the names of the packed weights."""
    content = proto.SerializeToString()
    wanted = onnxruntime.InferenceSession(content).run(None, FEEDS)
    with tightship.load(content) as model:
        for actual, other in zip(model.run(FEEDS).values(), wanted, strict=True):
            np.testing.assert_allclose(actual, other, rtol=1e-4, atol=1e-5)
        assert not [step for step in model.plan.steps if step.dynamic_reason]
        return [weight.name for weight in model.plan.weights]


def test_a_constant_that_two_graphs_multiply_by_is_packed_once() -> None:
    proto = gated_scan()
    proto.graph.node[1].input[0] = "hu"
    proto.graph.node.insert(1, helper.make_node("MatMul", ["h", "u"], ["hu"]))
    assert assert_as_onnxruntime(proto).count("u") == 1


def test_constants_of_one_name_in_two_bodies_are_two() -> None:
    proto = gated_scan()
    (body,) = [a.g for a in proto.graph.node[1].attribute if a.HasField("g")]
    own = numpy_helper.from_array(filled(16, 16), "u")
    proto.graph.initializer.remove(next(i for i in proto.graph.initializer if i.name == "u"))
    body.initializer.append(own)
    second = proto.graph.node.add()
    second.CopyFrom(proto.graph.node[1])
    second.input[0] = "last"
    second.output[:] = ["end", "rest"]
    (other,) = [a.g for a in second.attribute if a.HasField("g")]
    other.initializer[0].CopyFrom(numpy_helper.from_array(-filled(16, 16), "u"))
    proto.graph.output[0].name, proto.graph.output[1].name = "end", "rest"
    names = assert_as_onnxruntime(proto)
    assert sorted(n for n in names if n.endswith(".u")) == ["end.body.u", "last.body.u"]


def test_a_body_without_all_kernels_leaves_no_weight_behind() -> None:
    proto = gated_scan()
    (body,) = [a.g for a in proto.graph.node[1].attribute if a.HasField("g")]
    node = next(n for n in body.node if n.op_type == "Relu")
    node.op_type, node.domain = "Relu", ""
    body.node.insert(0, helper.make_node("NonZero", ["s"], ["places"]))
    body.node.append(helper.make_node("Size", ["places"], ["count"]))
    body.node.append(helper.make_node("Cast", ["count"], ["number"], to=1))
    node.op_type = "Add"
    node.input.append("number")
    ordered = [n for n in body.node if n is not node]
    del body.node[:]
    body.node.extend([*ordered, node])
    content = proto.SerializeToString()
    with tightship.load(content) as model:
        assert [step.name for step in model.plan.steps if step.dynamic_reason]
        wanted = onnxruntime.InferenceSession(content).run(None, FEEDS)
        for actual, other in zip(model.run(FEEDS).values(), wanted, strict=True):
            np.testing.assert_allclose(actual, other, rtol=1e-4, atol=1e-5)
        assert not [w.name for w in model.plan.weights if ".body." in w.name]


@pytest.mark.parametrize("order", ["s, d", "d, s"])
@pytest.mark.parametrize("without", [(), ("onednn",)])
@pytest.mark.parametrize("length", [8, 5000])
def test_a_sum_that_is_carried_is_updated_in_place(
    order: str, without: tuple[str, ...], length: int
) -> None:
    proto = parse(
        f"""sums (int64 n, float[{length}] x, float[{length}] y) => (float[{length}] sum) {{
            sum = Loop (n, "", x) <body = b (int64 i, bool c, float[{length}] s)
                => (bool more, float[{length}] t) {{
                    more = Identity (c)
                    f = Cast <to = 1> (i)
                    d = Mul (y, f)
                    t = Add ({order}) }}>
        }}"""
    )
    x, y = filled(length), filled(length) * 2
    with tightship.load(proto.SerializeToString(), without=without) as model:
        assert model.plan.arena_bytes < 4 * length + 512  # of `d`; a second copy would be as large
        for trips in (0, 1, 4, 0):
            (actual,) = model.run({"n": np.array(trips), "x": x, "y": y}).values()
            wanted = x + y * (trips * (trips - 1) // 2)
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(x, filled(length))


def test_a_state_that_is_read_after_its_sum_is_not_updated_in_place() -> None:
    proto = parse(
        """sums (int64 n, float[4] x) => (float[4] sum, float[4] other) {
            sum, other = Loop (n, "", x, x) <body = b (int64 i, bool c, float[4] s, float[4] o)
                => (bool more, float[4] t, float[4] p) {
                    more = Identity (c)
                    t = Add (s, o)
                    p = Mul (t, s) }>
        }"""
    )
    with tightship.load(proto.SerializeToString()) as model:
        first = other = filled(4)
        results = model.run({"n": np.array(3), "x": filled(4)})
        for _ in range(3):
            added = first + other
            first, other = added, added * first
        np.testing.assert_allclose(results["sum"], first, rtol=1e-5)
        np.testing.assert_allclose(results["other"], other, rtol=1e-5)
