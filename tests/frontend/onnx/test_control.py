import pytest

from tests import models
from tightship.errors import GraphError
from tightship.frontend.onnx import read_bytes
from tightship.graph import DType, Graph
from tightship.graph.refusal import REFUSAL


def read(text: str, **weights: models.Array) -> Graph:
    return read_bytes(models.parse(text, **weights).SerializeToString())


def subgraph(graph: Graph, attribute: str) -> Graph:
    (node,) = (node for node in graph.nodes if node.subgraphs)
    value = node.attributes[attribute]
    assert isinstance(value, Graph)
    return value


def test_branches_name_what_they_capture() -> None:
    graph = read_bytes(models.if_model().SerializeToString())
    branch = subgraph(graph, "then_branch")
    assert branch.captures == ("x",)
    assert branch.value("x").shape == (2, 3)
    assert branch.value("a").shape == (2, 3)
    assert graph.nodes[0].reads == ("flag", "x")


def test_an_if_has_the_shape_that_its_branches_share() -> None:
    value = read_bytes(models.if_model().SerializeToString()).value("y")
    assert value.dtype is DType.FLOAT32
    assert value.shape is not None
    assert value.shape[0] == 2
    assert not isinstance(value.shape[1], int)


@pytest.mark.parametrize(("flag", "shape"), [(True, (2, 3)), (False, (2, 6))])
def test_an_if_of_a_known_condition_has_the_shape_of_the_branch_taken(
    flag: bool, shape: tuple[int, ...]
) -> None:
    model = models.if_model()
    model.graph.initializer.append(models.numpy_helper.from_array(models.np.array(flag), "flag"))
    assert read_bytes(model.SerializeToString()).value("y").shape == shape


def test_branches_of_two_types_are_refused() -> None:
    with pytest.raises(GraphError, match=r"`y` \(If\).*float32.*int64"):
        read(
            """g (bool c, float[2] x) => (float[2] y) { y = If (c) <
                then_branch = l () => (float[2] a) { a = Neg (x) },
                else_branch = r () => (int64[1] b) { b = Shape (x) }
            > }"""
        )


def test_branches_of_two_output_counts_are_refused() -> None:
    with pytest.raises(GraphError, match="1 outputs in one branch and 2 in the other"):
        read(
            """g (bool c, float[2] x) => (float[2] y) { y = If (c) <
                then_branch = l () => (float[2] a) { a = Neg (x) },
                else_branch = r () => (float[2] b, float[2] d) { b = Neg (x) d = Neg (x) }
            > }"""
        )


def test_an_if_without_outputs_may_have_a_branch_that_does_not_fit() -> None:
    model = models.parse(
        """g (bool c, float[2] x) => (float[2] z) { z = Neg (x) y = If (c) <
            then_branch = l () => (float[2] a) { a = Neg (x) },
            else_branch = r () => (float[2] b) {
                axes = Constant <value_ints = [0]> () b = Squeeze (x, axes)
            }
        > }"""
    )
    del model.graph.node[1].output[:]
    assert read_bytes(model.SerializeToString()).outputs == ("z",)


def test_a_loop_of_known_length_stacks_that_many() -> None:
    graph = read_bytes(models.loop_model(5).SerializeToString())
    assert graph.value("last").shape == (2,)
    assert graph.value("all").shape == (5, 2)
    body = subgraph(graph, "body")
    assert body.captures == ("x",)
    assert body.inputs == ("i", "going", "s")
    assert body.value("t").shape == (2,)


def test_a_loop_of_negative_iterations_takes_none() -> None:
    assert read_bytes(models.loop_model(-3).SerializeToString()).value("all").shape == (0, 2)


def test_a_loop_that_may_end_early_stacks_an_unknown_number() -> None:
    model = models.loop_model(5)
    body = model.graph.node[0].attribute[0].g
    body.node[0].CopyFrom(models.onnx.helper.make_node("Less", ["i", "limit"], ["on"]))
    model.graph.initializer.append(
        models.numpy_helper.from_array(models.np.array(3, models.np.int64), "limit")
    )
    shape = read_bytes(model.SerializeToString()).value("all").shape
    assert shape is not None
    assert not isinstance(shape[0], int)


def test_a_state_that_grows_has_an_unknown_length() -> None:
    graph = read(
        """g (float[2, 3] x, int64 n, bool c) => (float[m, 3] y) { y = Loop (n, c, x) <
            body = b (int64 i, bool going, float[k, 3] s) => (bool on, float[j, 3] t) {
                on = Identity (going)
                t = Concat <axis = 0> (s, x)
            }
        > }"""
    )
    assert graph.value("y").shape == ("m", 3)
    assert subgraph(graph, "body").value("t").shape in [("j", 3), (None, 3)]


def test_a_state_that_gains_a_dimension_has_no_shape() -> None:
    model = models.parse(
        """g (float[2] x, int64 n, bool c) => (float y) { y = Loop (n, c, x) <
            body = b (int64 i, bool going, float s) => (bool on, float t) {
                on = Identity (going)
                t = Unsqueeze (s, zero)
            }
        > }""",
        zero=models.np.array([0], models.np.int64),
    )
    for graph in (model.graph, model.graph.node[0].attribute[0].g):
        for value in (*graph.output, *graph.input[2:]):
            if value.name in ("s", "t", "y"):
                value.type.tensor_type.ClearField("shape")
    assert read_bytes(model.SerializeToString()).value("y").shape is None


def test_a_scan_slices_and_stacks_along_its_axes() -> None:
    graph = read(
        """g (float[4] s, float[7, 4] x) => (float[4] last, float[4, 7] all) {
            last, all = Scan <num_scan_inputs = 1, scan_output_axes = [-1],
                body = b (float[4] p, float[4] e) => (float[4] q, float[4] r) {
                    q = Add (p, e)
                    r = Identity (q)
                }> (s, x)
        }"""
    )
    assert graph.value("last").shape == (4,)
    assert graph.value("all").shape == (4, 7)
    assert subgraph(graph, "body").value("e").shape == (4,)


CHOICE = """g (bool c, float[n, 3] x) => (float[m, k] y) {{ y = If ({condition}) <
    then_branch = l () => (float[p, 3] a) {{ s = {left} a = Unsqueeze (s, first) }},
    else_branch = r () => (float[q, 3] b) {{ t = {right} b = Identity (t) }}
> }}"""
ROW, ALL, ODD = "Squeeze (x, first)", "Neg (x)", "com.microsoft.Unheard (x)"


def choice(left: str, right: str, *, rows: int, condition: str = "c") -> Graph:
    model = models.parse(
        CHOICE.format(left=left, right=right, condition=condition),
        '<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>',
        first=models.np.array([0], models.np.int64),
        yes=models.np.array(True),
        no=models.np.array(False),
    )
    return read_bytes(model.SerializeToString(), shapes={"x": (rows, 3)})


def test_a_branch_that_the_shapes_do_not_fit_gives_no_type() -> None:
    graph = choice(ROW, ALL, rows=2)
    assert graph.value("y").shape == (2, 3)
    (node,) = subgraph(graph, "then_branch").nodes
    assert node.domain == REFUSAL
    reason = str(node.attributes["reason"])
    assert "`y` (If)" in reason
    assert "`then_branch`" in reason
    assert "`s` (Squeeze) cannot be typed" in reason
    assert [node.operator for node in subgraph(graph, "else_branch").nodes] == ["Neg", "Identity"]


def test_a_branch_that_other_shapes_fit_is_read_for_those() -> None:
    graph = choice(ROW, ALL, rows=1)
    assert subgraph(graph, "then_branch").nodes[0].operator == "Squeeze"


def test_an_if_without_a_branch_that_fits_is_refused() -> None:
    with pytest.raises(GraphError, match=r"`then_branch`: .*`s` .*`else_branch`: .*`t` ") as caught:
        choice(ROW, ROW, rows=2)
    assert type(caught.value) is GraphError


def test_a_branch_that_is_known_to_be_taken_must_fit() -> None:
    with pytest.raises(GraphError, match=r"`s` .*cannot be typed") as caught:
        choice(ROW, ALL, rows=2, condition="yes")
    assert type(caught.value) is GraphError


def test_a_branch_that_is_never_taken_may_hold_unknown_operators() -> None:
    assert choice(ALL, ODD, rows=2, condition="yes").value("y").shape == (1, 2, 3)
    with pytest.raises(GraphError, match="Unheard"):
        choice(ALL, ODD, rows=2)


def test_a_sequence_map_gives_a_sequence() -> None:
    graph = read(
        """g (seq(float[2]) x) => (float[n] y) {
            z = SequenceMap <body = b (float[2] e) => (float[2] f) { f = Neg (e) }> (x)
            y = ConcatFromSequence <axis = 0> (z)
        }"""
    )
    assert graph.value("z").dtype is None
    assert graph.value("y").dtype is DType.FLOAT32


def test_a_body_with_another_number_of_inputs_is_refused() -> None:
    model = models.loop_model()
    del model.graph.node[0].attribute[0].g.input[2]
    with pytest.raises(GraphError, match="gives 3 inputs to its graph `body`, which takes 2"):
        read_bytes(model.SerializeToString())


def test_a_body_with_too_few_outputs_is_refused() -> None:
    model = models.loop_model()
    del model.graph.node[0].attribute[0].g.output[1:]
    with pytest.raises(GraphError, match="gives 1 outputs; its state needs 2"):
        read_bytes(model.SerializeToString())


def test_a_name_that_hides_an_outer_one_is_refused() -> None:
    model = models.if_model()
    inner = model.graph.node[0].attribute[0].g
    inner.node[0].output[0] = inner.output[0].name = "flag"
    with pytest.raises(GraphError, match="`flag` a second time"):
        read_bytes(model.SerializeToString())


def test_a_subgraph_that_reads_an_unknown_name_is_refused() -> None:
    model = models.if_model()
    model.graph.node[0].attribute[0].g.node[0].input[0] = "nowhere"
    with pytest.raises(GraphError, match="reads `nowhere`"):
        read_bytes(model.SerializeToString())


def nested_body(depth: int) -> str:
    """A loop's body that runs a loop whose state grows, and so on."""
    d = depth
    inner = f"n{d} = Loop (n, c, x) <body = {nested_body(d - 1)}>" if d else "n0 = Neg (s0)"
    return f"""b{d} (int64 i{d}, bool g{d}, float[k] s{d}) => (bool o{d}, float[m] t{d}) {{
        o{d} = Identity (g{d})
        {inner}
        t{d} = Concat <axis = 0> (n{d}, x)
    }}"""


def test_loops_within_loops_take_bounded_time() -> None:
    graph = read(
        f"""g (float[2] x, int64 n, bool c) => (float[m] y) {{
            y = Loop (n, c, x) <body = {nested_body(18)}>
        }}"""
    )
    assert graph.value("y").dtype is DType.FLOAT32
