import numpy as np
import pytest

from tests.models import filled, parse
from tightship.cost.schedule import schedule_of
from tightship.frontend.onnx import read_bytes
from tightship.planner import AliasKind


def made(text, **weights):
    return schedule_of(read_bytes(parse(text, **weights).SerializeToString()))


def aliases(graph):
    """Aliases by name: output, input, kind."""
    values, steps = graph.schedule.values, graph.schedule.steps
    return {
        (values[alias.output].name, values[alias.input].name, alias.kind.value)
        for step in steps
        for alias in step.aliases
    }


def test_constants_are_weights_and_inputs_lie_outside():
    graph = made("net (float[2, 4] x) => (float[2, 3] y) { y = MatMul (x, w) }", w=filled(4, 3))
    assert graph.weight_bytes == 48
    assert graph.input_bytes == 32
    assert [(v.name, v.size_bytes, v.external) for v in graph.schedule.values] == [
        ("x", 32, True),
        ("y", 24, False),
    ]
    assert graph.schedule.outputs == (1,)


def test_elementwise_results_may_be_written_over_an_operand_of_their_shape():
    graph = made(
        """net (float[2, 4] x, float[4] b) => (float[2, 4] s) {
            a = Add (x, b)
            s = Softmax (a)
        }"""
    )
    assert aliases(graph) == {("a", "x", "in_place"), ("s", "a", "in_place")}


def test_a_larger_element_does_not_lie_over_a_smaller_one():
    graph = made(
        """net (float[8] x) => (double[8] d, float16[8] h) {
            d = Cast <to = 11> (x)
            h = Cast <to = 10> (x)
        }"""
    )
    assert aliases(graph) == {("h", "x", "in_place")}


@pytest.mark.parametrize(
    ("inputs", "body", "found"),
    [
        ("uint8[8] x, uint8[8] b", 'y = BitShift <direction = "LEFT"> (x, b)', {"x", "b"}),
        ("float[8] x, int32[1] b", "y = CastLike (x, b)", {"x"}),
        ("float[8] x, int32[1] b", "y = BitCast <to = 6> (x)", {"x"}),
        ("float[1, 8, 2, 2] x, float[1] b", "y = LRN <size = 3> (x)", {"x"}),
        ("float[8] x, int64 b", "y = CumSum (x, b)", {"x"}),
        ("float[8, 8] x, int64 b", "y = Trilu (x, b)", {"x"}),
        ("float[8] x, int64[2] b", "y = ScatterElements (x, b, two)", {"x"}),
        ("float[8] x, int64[2, 1] b", "y = ScatterND (x, b, two)", {"x"}),
    ],
)
def test_what_kernels_write_over_their_operands_may_lie_there(inputs, body, found):
    header = '<ir_version: 10, opset_import: ["": 26]>'
    text = f"net ({inputs}) => (y) {{ {body} }}"
    graph = schedule_of(read_bytes(parse(text, header, two=np.float32([1, 2])).SerializeToString()))
    assert aliases(graph) == {("y", name, "in_place") for name in found}


def test_reshapes_and_leading_cuts_are_views_and_others_are_not():
    graph = made(
        """net (float[1, 4, 6] x) => (float[24] f, float[1, 2, 6] p, float[1, 4, 3] t) {
            f = Reshape (x, shape)
            p, q = Split <axis = 1> (x, halves)
            t, u = Split <axis = 2> (x, thirds)
        }""",
        shape=np.array([24]),
        halves=np.array([2, 2]),
        thirds=np.array([3, 3]),
    )
    views = {("f", "x", "view"), ("p", "x", "view"), ("q", "x", "view")}
    assert aliases(graph) == views


def test_a_slice_with_a_stride_is_no_view():
    text = "net (float[8] x) => (float[n] y) {{ y = Slice (x, {}) }}"
    numbers = {
        "first": np.array([0]),
        "last": np.array([8]),
        "axes": np.array([0]),
        "one": np.array([1]),
        "two": np.array([2]),
    }
    for step, expected in (("one", {("y", "x", "view")}), ("two", set())):
        graph = made(text.format(f"first, last, axes, {step}"), **numbers)
        assert aliases(graph) == expected


def test_what_follows_from_shapes_takes_no_step():
    graph = made(
        """net (float[2, 4] x) => (float[8] y) {
            s = Shape (x)
            n = ReduceProd <keepdims = 1> (s)
            y = Reshape (x, n)
        }"""
    )
    assert [step.operator for step in graph.schedule.steps] == ["Reshape"]


def test_a_constant_that_a_node_fills_is_a_weight():
    graph = made(
        """net (float[2, 4] x) => (float[2, 3] y) {
            w = ConstantOfShape (shape)
            y = MatMul (x, w)
        }""",
        shape=np.array([4, 3]),
    )
    assert graph.weight_bytes == 48
    assert [step.operator for step in graph.schedule.steps] == ["MatMul"]


def test_a_size_that_depends_on_data_is_named_and_counts_nothing():
    graph = made("net (float[8] x) => (int64[1, n] y) { y = NonZero (x) }")
    assert graph.unsized == ("y",)
    assert graph.schedule.values[1].size_bytes == 0


def test_donated_inputs_are_external_and_given_up():
    model = parse("net (float[4] x) => (float[4] y) { y = Relu (x) }").SerializeToString()
    given = schedule_of(read_bytes(model), donate_inputs=True).schedule
    assert given.values[0].external
    assert given.values[0].donated
    assert AliasKind.IN_PLACE in {alias.kind for step in given.steps for alias in step.aliases}


def test_operands_of_a_leading_concatenation_are_its_parts():
    text = """net (float[1, 2, 3] x, float[1, 4, 3] y) => (float[1, 7, 3] c, float[1, 2, 6] d) {
        c = Concat <axis = 1> (x, w, y)
        d = Concat <axis = 2> (x, x)
    }"""
    graph = made(text, w=filled(1, 1, 3))
    parts = [alias for step in graph.schedule.steps for alias in step.aliases]
    assert [(part.input, part.kind, part.offset_bytes) for part in parts] == [
        (0, AliasKind.PART, 0),
        (1, AliasKind.PART, 36),
    ]
