import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

from tests import models
from tightship.errors import FormatError, GraphError
from tightship.frontend.onnx import read_bytes
from tightship.graph import Graph

CHAIN = "g (float[2] x) => (float[2] y) { a = Neg (x) b = Abs (a) y = Exp (b) }"


def read(model: ModelProto | str) -> Graph:
    model = models.parse(model) if isinstance(model, str) else model
    return read_bytes(model.SerializeToString())


def refused(model: ModelProto | str, reason: str) -> None:
    with pytest.raises(GraphError, match=reason):
        read(model)


def test_nodes_keep_their_order_and_their_opset() -> None:
    graph = read(CHAIN)
    assert [node.operator for node in graph.nodes] == ["Neg", "Abs", "Exp"]
    assert {(node.domain, node.version) for node in graph.nodes} == {("", 20)}


def test_the_default_domain_has_one_name() -> None:
    model = models.parse(CHAIN)
    model.opset_import[0].domain = model.graph.node[0].domain = "ai.onnx"
    assert {node.domain for node in read(model).nodes} == {""}


def test_every_node_has_a_name_of_its_own() -> None:
    model = models.parse(CHAIN)
    model.graph.node[0].name = model.graph.node[1].name = "same"
    model.graph.node[2].name = ""
    assert [node.name for node in read(model).nodes] == ["same", "Abs_b_1", "Exp_y"]


def test_nodes_out_of_order_are_put_in_order() -> None:
    model = models.parse(CHAIN)
    wanted = [node.outputs for node in read(model).nodes]
    model.graph.node.reverse()
    assert [node.outputs for node in read(model).nodes] == wanted


def test_what_a_subgraph_takes_from_outside_is_ahead_of_it() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] p) { p = Neg (a) },
                    else_branch = e () => (float[2] q) { q = Abs (x) }>
        a = Exp (x)
    }"""
    assert [node.operator for node in read(models.parse(text)).nodes] == ["Exp", "If"]


def test_a_value_that_nothing_makes_is_named() -> None:
    text = "g (float[2] x) => (float[2] y) { y = Add (x, z) }"
    refused(models.parse(text), r"`y` \(Add\) reads `z`, which no input.*missing")


def test_a_cycle_is_refused() -> None:
    refused(
        "g (float[2] x) => (float[2] y) { a = Add (x, y) y = Neg (a) }",
        r"`a` \(Add\) reads `y`.*cyclic",
    )


def test_a_name_defined_twice_is_refused() -> None:
    refused("g (float[2] x) => (float[2] y) { y = Neg (x) y = Abs (x) }", "`y` a second time")
    refused("g (float[2] x) => (float[2] x) { x = Neg (x) }", "`x` a second time")
    refused("g (float[2] x, float[2] x) => (float[2] y) { y = Neg (x) }", "two inputs of the same")
    refused("g (float[2] x) => (float[2] y, float[2] y) { y = Neg (x) }", "two outputs of the same")


def test_two_initializers_of_one_name_are_refused() -> None:
    model = models.parse(CHAIN, w=np.ones(2, np.float32))
    model.graph.initializer.append(model.graph.initializer[0])
    refused(model, "`w` a second time")


def test_an_output_that_nothing_defines_is_refused() -> None:
    refused("g (float[2] x) => (float[2] y) { z = Neg (x) }", "reads `y`, which no input")


@pytest.mark.parametrize(
    ("operator", "domain", "opset", "reason"),
    [
        ("Nag", "", 20, r"`Nag`, which domain '' does not have in opset 20"),
        ("Neg", "com.example", 20, r"`n` \(Neg\) uses domain 'com.example', which the model does"),
        ("Gelu", "", 19, r"`Gelu`, which domain '' does not have in opset 19"),
        ("Neg", "", 0, r"opset 0 of domain ''"),
        ("Neg", "", -5, r"opset -5 of domain ''"),
        ("Neg", "", 999, r"opset 999 of domain ''; the installed onnx .* knows 1 to"),
    ],
)
def test_an_unknown_operator_or_opset_is_named(
    operator: str, domain: str, opset: int, reason: str
) -> None:
    model = models.parse("g (float[2] x) => (float[2] y) { y = Neg (x) }")
    node = model.graph.node[0]
    node.name, node.op_type, node.domain = "n", operator, domain
    model.opset_import[0].version = opset
    refused(model, reason)


def test_an_opset_of_an_unknown_domain_may_be_any_number() -> None:
    model = models.parse(CHAIN)
    model.opset_import.append(helper.make_opsetid("com.example", 7))
    assert len(read(model).nodes) == 3
    model.opset_import[1].version = 1 << 40
    refused(model, "com.example")


def test_a_domain_imported_twice_is_refused() -> None:
    model = models.parse(CHAIN)
    model.opset_import.append(helper.make_opsetid("ai.onnx", 19))
    refused(model, "opset 20 and opset 19")


def test_a_newer_format_is_refused() -> None:
    model = models.parse(CHAIN)
    model.ir_version = onnx.IR_VERSION + 1
    with pytest.raises(FormatError, match=f"knows up to {onnx.IR_VERSION}"):
        read(model)


def test_a_model_of_the_first_format_has_opset_1() -> None:
    model = models.parse("g (float[2] x) => (float[2] y) { y = Neg (x) }")
    model.ir_version = 1
    model.ClearField("opset_import")
    assert read(model).nodes[0].version == 1


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("y = Add (x, i)", r"`y` \(Add\) cannot be typed"),
        ("y = Add (x, w)", r"`y` \(Add\) cannot be typed: .*[Ii]ncompatible dimensions"),
        ("y = Add (x)", r"`y` \(Add\) cannot be typed: .*input size 1"),
        ("y = Cast (x)", r"`y` \(Cast\) cannot be typed: .*`?'?to'? is missing"),
        ("y = Neg <size = 3> (x)", r"`y` \(Neg\) has the attribute `size`, which"),
        ("y = Softmax <axis = 1.5> (x)", r"`y` \(Softmax\) cannot be typed: .*axis"),
        ('y = Einsum <equation = "i->i->i"> (x)', r"`y` \(Einsum\) has the equation"),
        ("y, z = Split <num_outputs = 3> (x)", r"`y` \(Split\) has num_outputs=3, but 2"),
        ("y = Constant ()", r"`y` \(Constant\) has 0 attributes"),
        ("y = Constant <value_int = 1, value_float = 1.0> ()", r"has 2 attributes"),
        ("y = Constant <value_ints = 1> ()", r"`y` \(Constant\) .*`value_ints`"),
        ("y = Constant <value = 1> ()", r"Attribute `value` of node .* must be a tensor"),
        ("y = Loop (x)", r"`y` \(Loop\) cannot be typed: .*input size 1"),
        ("y = If (c)", r"no graph|cannot be typed"),
    ],
)
def test_a_node_that_cannot_be_typed_is_named(node: str, reason: str) -> None:
    refused(f"g (float[2] x, int64[2] i, float[3] w, bool c) => (float[2] y) {{ {node} }}", reason)


def test_an_attribute_given_twice_is_refused() -> None:
    model = models.parse("g (float[2] x) => (float[2] y) { y = Softmax <axis = 0> (x) }")
    model.graph.node[0].attribute.append(model.graph.node[0].attribute[0])
    refused(model, "has the attribute `axis` twice")


def test_a_declared_type_that_differs_is_refused() -> None:
    refused("g (float[2] x) => (int64[2] y) { y = Neg (x) }", "float32, but the model declares int")


def test_a_declared_shape_completes_what_is_inferred() -> None:
    text = "g (float[3] x) => (int64[1, 2] y) { y = NonZero (x) }"
    assert read(text).value("y").shape == (1, 2)


def test_a_bound_symbol_is_bound_in_declared_shapes() -> None:
    model = models.parse("g (float[batch] x) => (int64[1, batch] y) { y = NonZero (x) }")
    graph = read_bytes(model.SerializeToString(), shapes={"x": (6,)})
    assert graph.value("y").shape == (1, 6)


def test_a_name_that_is_not_utf8_is_refused() -> None:
    raw = models.parse(CHAIN).SerializeToString()
    for name in (b"\x0a\x01x", b"\x12\x01a", b"\x22\x03Neg"):
        assert name in raw
        with pytest.raises((FormatError, GraphError), match=r"UTF-8|\\xff|utf-8"):
            read_bytes(raw.replace(name, name[:-1] + b"\xff"))


@pytest.mark.parametrize(
    ("attribute", "values"),
    [
        ("value_float = 1.5", 1.5),
        ("value_floats = [1.5, 2.5]", [1.5, 2.5]),
        ("value_int = 7", 7),
        ("value_ints = [7, 8]", [7, 8]),
        ('value_string = "a"', "a"),
        ('value_strings = ["a", "bc"]', ["a", "bc"]),
        ("value = int64[2] {3, 4}", [3, 4]),
    ],
)
def test_a_constant_node_becomes_a_constant(attribute: str, values: object) -> None:
    graph = read(f"g (float[1] x) => (float[1] y) {{ c = Constant <{attribute}> () y = Neg (x) }}")
    assert graph.constants["c"].array().tolist() == values
    assert [node.operator for node in graph.nodes] == ["Neg"]
    assert graph.value("c").shape == graph.constants["c"].shape


def test_attributes_are_plain_values() -> None:
    graph = read(
        """g (float[1, 1, 4] x, float[1, 1, 2] w) => (float[1, 1, 4] y, int64[1] s, float[1] t) {
            y = Conv <auto_pad = "SAME_UPPER", strides = [1], group = 1> (x, w)
            s = Shape <start = 2> (y)
            t = HardSigmoid <alpha = 0.5> (x)
        }"""
    )
    conv, shape, hard = graph.nodes
    assert conv.attributes == {"auto_pad": "SAME_UPPER", "strides": (1,), "group": 1}
    assert shape.attributes == {"start": 2}
    assert hard.attributes == {"alpha": 0.5}
