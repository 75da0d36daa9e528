"""Constants of bodies, packed among the weights of the program around them."""

import numpy as np
import onnxruntime
from onnx import ModelProto, helper, numpy_helper

import tightship
from tests.models import filled, gated_scan

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
