import numpy as np
import pytest

from tests.engine.graphs import (
    assert_close,
    expected,
    graph_of,
    inputs_of,
    lowered,
    run,
    static_graph,
)
from tests.models import filled
from tests.processor import needs_avx512
from tests.zoo.networks import STATIC
from tightship import _core
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.program.program import PrimitiveWork, Space
from tightship.planner import AliasKind

ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

OUTPUTS = {
    "an input": "g (float[2, 3] x) => (float[2, 3] x) { y = Neg (x) }",
    "an input under another name": "g (float[2, 3] x) => (float[2, 3] y) { y = Identity (x) }",
    "an input under another shape": "g (float[2, 3] x) => (float[6] y) { y = Reshape (x, flat) }",
    "an input transposed": "g (float[2, 3] x) => (float[3, 2] y) { y = Transpose (x) }",
    "an input and what is made of it":
        "g (float[2, 3] x) => (float[2, 3] x, float[2, 3] y) { y = Exp (x) }",
    "a constant": "g (float[2, 3] x) => (float[2, 3] w) { y = Neg (x) }",
    "a constant under another shape": "g (float[2, 3] x) => (float[6] y) { y = Reshape (w, flat) }",
    "a constant transposed": "g (float[2, 3] x) => (float[3, 2] y) { y = Transpose (w) }",
    "one value twice": """g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
        a = Exp (x) y = Identity (a) z = Identity (a) }""",
    "a value and its view": """g (float[2, 3] x) => (float[2, 3] a, float[6] z) {
        a = Exp (x) z = Reshape (a, flat) }""",
    "a view and its value": """g (float[2, 3] x) => (float[6] z, float[2, 3] a) {
        a = Exp (x) z = Reshape (a, flat) }""",
    "a value and its transpose": """g (float[2, 3] x) => (float[3, 2] z, float[2, 3] a) {
        a = Exp (x) z = Transpose (a) }""",
    "an output that is read": """g (float[2, 3] x) => (float[2, 3] a, float[2, 3] z) {
        a = Exp (x) z = Neg (a) }""",
    "two inputs of one shape": """g (float[2, 3] x, float[2, 3] v) => (float[2, 3] v, float[2, 3] x)
        { y = Neg (x) }""",
}  # fmt: skip


def output_graph(text):
    return graph_of(text, w=filled(2, 3), flat=np.array([6]))


@pytest.mark.parametrize("text", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize("without", [(), ("onednn",)])
def test_an_output_may_be(text, without):
    graph = output_graph(text)
    given = inputs_of(graph)
    given["x"] = np.arange(6, dtype=np.float32).reshape(2, 3)
    numbers = {**given, "w": filled(2, 3), "a": np.exp(given["x"])}
    found = run(graph, without, given)
    for name, value in expected(graph, given).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6)
        if name in numbers:
            np.testing.assert_allclose(found[name], numbers[name], rtol=1e-6)
        assert not any(np.shares_memory(found[name], x) for x in given.values())


@pytest.mark.parametrize("text", OUTPUTS.values(), ids=OUTPUTS)
def test_every_output_has_a_place_of_its_own_where_the_caller_has_it(text):
    program = lowered(output_graph(text))
    slots = [o.slot for o in (*program.inputs.values(), *program.outputs.values())]
    assert len(set(slots)) == len(slots)
    for name, operand in program.outputs.items():
        assert operand.space is Space.EXTERNAL
        assert program.slots[operand.slot].external
        assert program.slots[operand.slot].name == name
    written = [o.slot for step in program.steps for o in step.writes]
    assert {o.slot for o in program.outputs.values()} <= set(written)


def test_an_output_is_written_straight_to_where_the_caller_has_it():
    program = lowered(output_graph(OUTPUTS["an output that is read"]))
    assert [step.operator for step in program.steps] == ["Exp", "Neg"]
    assert all(slot.external for slot in program.slots)


@needs_avx512
def test_a_transpose_moves_nothing():
    graph = graph_of(
        """g (float[1, 2, 8, 4] q, float[1, 2, 8, 4] k) => (float[1, 2, 8, 8] y) {
            t = Transpose <perm = [0, 1, 3, 2]> (k)
            y = MatMul (q, t)
        }""",
    )
    program = lowered(graph)
    assert [step.operator for step in program.steps] == ["MatMul"]
    assert_close(run(graph), expected(graph))


@pytest.mark.parametrize("operator", ["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"])
def test_a_view_takes_neither_a_step_nor_a_slot(operator):
    shape = {"Squeeze": "2, 3", "Unsqueeze": "1, 1, 2, 1, 3", "Reshape": "6", "Flatten": "1, 6",
             "Identity": "1, 2, 3"}[operator]  # fmt: skip
    axes = {"Squeeze": [0], "Unsqueeze": [0, 3], "Reshape": [6]}.get(operator)
    operands = "e, axes" if axes else "e"
    attributes = "<axis = 1>" if operator == "Flatten" else ""
    graph = graph_of(
        f"""g (float[1, 2, 3] x) => (float[{shape}] y) {{
            e = Exp (x) v = {operator} {attributes} ({operands}) y = Neg (v) }}""",
        **({"axes": np.array(axes)} if axes else {}),
    )
    program = lowered(graph)
    assert [step.operator for step in program.steps] == ["Exp", "Neg"]
    assert [slot.name for slot in program.slots] == ["x", "e", "y"]
    assert_close(run(graph), expected(graph))


@pytest.mark.parametrize("name", STATIC)
def test_a_value_is_reordered_only_where_its_layout_differs_and_once(name):
    made = []
    for step in lowered(static_graph(name)).steps:
        if step.operator != "Reorder":
            continue
        assert isinstance(step.work, PrimitiveWork)
        source, target = (dict(step.work.arguments)[number] for number in (1, 17))
        assert source.desc != target.desc, step.name
        key = (
            source.space,
            source.slot,
            source.desc.dims,
            target.desc.strides,
            target.desc.blocks,
        )
        assert key not in made or target.space is Space.EXTERNAL, step.name
        made.append(key)


@ONEDNN
def test_what_lies_transposed_is_copied_once_for_a_product():
    graph = graph_of(
        """g (float[4, 5, 8] x) => (float[5, 4, 3] y) {
            t = Transpose <perm = [1, 0, 2]> (x) y = MatMul (t, w)
        }""",
        w=filled(8, 3),
    )
    assert [step.operator for step in lowered(graph).steps] == ["Reorder", "MatMul"]
    assert_close(run(graph), expected(graph))


@pytest.mark.parametrize("name", STATIC)
def test_a_sum_in_place_takes_over_bytes_that_die(name):
    steps = lowered(static_graph(name)).steps
    for index, step in enumerate(steps):
        for sharing in step.sharing:
            if sharing.kind is not AliasKind.TIED:
                continue
            later = [o.slot for after in steps[index + 1 :] for o in after.reads
                     if o.space in (Space.ARENA, Space.EXTERNAL)]  # fmt: skip
            assert sharing.input not in later, step.name
            reading = [o for o in step.reads
                       if o.space is Space.ARENA and o.slot == sharing.input]  # fmt: skip
            assert len({o.name for o in reading}) == 1


RESIDUAL = """g (float[1, 16, 8, 8] x) => (float[1, 16, 8, 8] y{}) {{
    {}
    n = Neg (r)
    c = Conv (n, w)
    a = Add (c, r)
    {}
}}"""
STARTS = {"row-major": "r = Relu (x)", "in the layout of the kernel": "r = Conv (x, w)"}
each_start = pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)


def residual_net(start, end, outputs=""):
    return graph_of(RESIDUAL.format(outputs, start, end), w=filled(16, 16, 1, 1))


def tied(graph, without=()):
    """Outputs that take over a residual's bytes, by name."""
    program = lowered(graph, without)
    return [program.slots[sharing.output].name for step in program.steps
            for sharing in step.sharing if sharing.kind is AliasKind.TIED]  # fmt: skip


@ONEDNN
@each_start
def test_a_residual_that_dies_is_summed_in_place(start):
    graph = residual_net(start, "y = Neg (a)")
    assert tied(graph) == ["a"]
    assert tied(graph, ("in_place",)) == []
    assert_close(run(graph), expected(graph))


LIVING = {
    "read later": ("b = Neg (a) y = Add (b, r)", ""),
    "a view read later": ("v = Identity (r) b = Neg (a) y = Add (b, v)", ""),
    "another shape read later": (
        "v = Flatten (r) b = Flatten (a) m = Mul (b, v) k = Flatten (x) y = Reshape (m, s)", ""),
    "an output": ("y = Neg (a)", ", float[1, 16, 8, 8] r"),
    "an output under another name": ("y = Neg (a) z = Identity (r)", ", float[1, 16, 8, 8] z"),
}  # fmt: skip


@each_start
@pytest.mark.parametrize(("end", "outputs"), LIVING.values(), ids=LIVING)
def test_a_residual_that_lives_on_is_not_summed_in_place(start, end, outputs):
    graph = graph_of(RESIDUAL.format(outputs, start, end), w=filled(16, 16, 1, 1),
                     s=np.array([1, 16, 8, 8]))  # fmt: skip
    assert tied(graph) == []
    assert_close(run(graph), expected(graph))


READ_BESIDES = """g (float[1, 16, 8, 8] x) => (float[1, 16, 8, 8] y) {{
    {} v = Identity (r) c = Conv ({}, w) a = Add (c, r) y = Neg (a) }}"""


@each_start
def test_a_residual_that_the_kernel_reads_besides_is_not_summed_in_place(start):
    graph = graph_of(READ_BESIDES.format(start, "r"), w=filled(16, 16, 1, 1))
    assert tied(graph) == []
    assert_close(run(graph), expected(graph))


@each_start
def test_a_residual_that_the_kernel_reads_as_a_view_is_not_written_over(start):
    graph = graph_of(READ_BESIDES.format(start, "v"), w=filled(16, 16, 1, 1))
    assert_close(run(graph), expected(graph))


@ONEDNN
def test_weights_that_several_want_alike_are_packed_once():
    graph = graph_of(
        """g (float[1, 16, 8, 8] x) => (float[1, 16, 8, 8] y) {
            a = Conv (x, w) b = Tanh (a) c = Conv (b, w) d = Tanh (c) y = Conv (d, w) }""",
        w=filled(16, 16, 1, 1),
    )
    assert [w.name for w in lowered(graph).weights] == ["w"]


def test_strides_of_a_dense_array():
    assert dense_strides([2, 3, 4]) == [12, 4, 1]
    assert dense_strides([5, 0, 4]) == [4, 4, 1]
    assert dense_strides([]) == []
