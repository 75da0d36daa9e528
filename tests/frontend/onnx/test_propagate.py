import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from tests import models
from tightship.frontend.onnx import read_bytes
from tightship.graph import Fill, Graph


def read(text: str, **weights: models.Array) -> Graph:
    return read_bytes(models.parse(text, **weights).SerializeToString())


def ints(*values: int) -> models.Array:
    return np.array(values, np.int64)


def test_a_reshape_to_a_computed_target_is_typed() -> None:
    graph = read_bytes(models.conv_net().SerializeToString())
    assert graph.known["t"].array().tolist() == [1, -1]
    assert graph.value("y").shape == (1, 256)
    assert [node.operator for node in graph.nodes][2:] == ["Shape", "Concat", "Reshape"]


def test_the_shape_of_an_unbound_input_is_not_known() -> None:
    model = models.parse(
        """g (float[batch, 3] x) => (int64[2] s, int64[1] t) {
            s = Shape (x)
            t = Shape <start = 1> (x)
        }"""
    )
    assert not read_bytes(model.SerializeToString(), allow_symbolic=True).known
    bound = read_bytes(model.SerializeToString(), shapes={"x": (5, 3)})
    assert bound.known["s"].array().tolist() == [5, 3]


@pytest.mark.parametrize("start", [None, -3, -1, 0, 1, 5])
@pytest.mark.parametrize("end", [None, -2, -1, 0, 1, 5])
def test_a_part_of_a_shape_is_cut_as_onnx_cuts_it(start: int | None, end: int | None) -> None:
    given_bounds = {"start": start, "end": end}
    attributes = ", ".join(f"{k} = {v}" for k, v in given_bounds.items() if v is not None)
    cut = f"<{attributes}>" if attributes else ""
    model = models.parse(f"g (float[4, 5] x) => (int64[n] s) {{ s = Shape {cut} (x) }}")
    (expected,) = ReferenceEvaluator(model).run(None, {"x": np.zeros((4, 5), np.float32)})
    graph = read_bytes(model.SerializeToString())
    assert graph.known["s"].array().tolist() == expected.tolist()


def test_a_shape_cut_before_its_first_axis_is_empty() -> None:
    graph = read("g (float[4, 5] x) => (int64[n] s) { s = Shape <end = -3> (x) }")
    assert graph.known["s"].array().tolist() == []
    assert graph.value("s").shape == (0,)


bounds = st.integers(-7, 7)


@given(bounds, bounds, st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_a_slice_is_cut_as_onnx_cuts_it(start: int, end: int, step: int) -> None:
    model = models.parse(
        "g (float[1] u) => (int64[n] y) { y = Slice (w, s, e, a, p) }",
        w=ints(*range(5)), s=ints(start), e=ints(end), a=ints(0), p=ints(step),
    )  # fmt: skip
    (expected,) = ReferenceEvaluator(model).run(None, {"u": np.zeros(1, np.float32)})
    graph = read_bytes(model.SerializeToString())
    assert graph.known["y"].array().tolist() == expected.tolist()
    assert graph.value("y").shape == expected.shape


@given(st.integers(-20, 20), st.integers(-20, 20).filter(bool))
def test_integers_are_divided_towards_zero(left: int, right: int) -> None:
    graph = read(
        "g (float[1] u) => (int64[1] q, int64[1] f) { q = Div (a, b) f = Mod <fmod = 1> (a, b) }",
        a=ints(left),
        b=ints(right),
    )
    (quotient,), (remainder,) = (graph.known[name].array() for name in "qf")
    assert quotient * right + remainder == left
    assert abs(remainder) < abs(right)
    assert quotient == int(left / right)


def test_a_division_by_zero_is_left_to_the_run() -> None:
    graph = read(
        "g (float[1] u) => (int64[1] q, int64[1] m) { q = Div (a, z) m = Mod (a, z) }",
        a=ints(1),
        z=ints(0),
    )
    assert not graph.known


def test_an_index_out_of_range_is_left_to_the_run() -> None:
    graph = read("g (float[1] u) => (int64[1] y) { y = Gather (a, i) }", a=ints(1), i=ints(7))
    assert not graph.known


def test_a_large_fill_takes_no_memory() -> None:
    graph = read(
        """g (float[1] u) => (float[n, m] y, float[n, m] z) {
            y = ConstantOfShape <value = float[1] {2.5}> (s)
            z = Identity (y)
        }""",
        s=ints(1 << 20, 1 << 20),
    )
    for name in "yz":
        fill = graph.known[name]
        assert isinstance(fill, Fill)
        assert fill.shape == (1 << 20, 1 << 20) == graph.value(name).shape
        assert fill.value == 2.5


@pytest.mark.parametrize(
    "node",
    ["Expand (a, s)", "Tile (a, s)", "Range (zero, end, one)", "ConstantOfShape (s)"],
)
def test_what_would_be_large_is_typed_and_not_evaluated(node: str) -> None:
    model = models.parse(
        f"g (float[1] u) => (int64[n] z) {{ y = {node} z = Shape (y) }}",
        a=ints(1), s=ints(1 << 33), zero=np.array(0, np.int64), one=np.array(1, np.int64),
        end=np.array(1 << 33, np.int64),
    )  # fmt: skip
    graph = read_bytes(model.SerializeToString())
    assert graph.value("y").shape == (1 << 33,)
    assert graph.known["z"].array().tolist() == [1 << 33]
    assert isinstance(graph.known.get("y", Fill(np.zeros(()), ())), Fill)


def test_known_values_reach_into_subgraphs() -> None:
    graph = read(
        """g (float[2, 6] x, bool c) => (float[3, 4] y) {
            t = Mul (a, b)
            y = If (c) <
                then_branch = l () => (float[n, m] p) { p = Reshape (x, t) },
                else_branch = r () => (float[n, m] q) { q = Reshape (x, t) }
            >
        }""",
        a=ints(1, 2),
        b=ints(3, 2),
    )
    assert graph.value("y").shape == (3, 4)


def test_known_values_cannot_be_written() -> None:
    graph = read("g (float[4] x) => (int64[1] y) { y = Shape (x) }")
    array = graph.known["y"].array()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize("exponent", [0.5, 2.0])
def test_a_side_computed_from_a_count_is_known(exponent: float) -> None:
    """The model has the square root of a number of patches as TorchScript writes it."""
    graph = read(
        """g (float[1, 4] x) => (int64[] y) {
            p = Pow (n, e)
            y = Cast <to = 7> (p)
        }""",
        n=np.array(9, np.float32), e=np.array(exponent, np.float32),
    )  # fmt: skip
    assert graph.known["y"].array() == int(9**exponent)
