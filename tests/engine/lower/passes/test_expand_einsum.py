"""Einsum as the product of two stacks of matrices, against NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.passes.expand_einsum import expand_einsum

LENGTHS = dict(zip("abcdefgh", (2, 3, 1, 4, 5, 2, 3, 6), strict=True))


def einsum_graph(equation, *, lengths=None):
    sources, result = equation.replace(" ", "").split("->")
    size = lengths or LENGTHS
    shapes = [[size[c] for c in part] for part in (*sources.split(","), result)]
    left, right, after = (f"float[{','.join(map(str, shape))}]" for shape in shapes)
    return graph_of(
        f'g ({left} x, {right} w) => ({after} y) {{\
        y = Einsum <equation = "{equation}"> (x, w) }}'
    )


def results(graph):
    x, w = (filled(*graph.value(name).static_shape) for name in "xw")
    w = (w[::-1] * 1.5).astype(np.float32)
    return run(graph, inputs={"x": x, "w": w})["y"], (x, w)


@settings(max_examples=60)
@given(data=st.data())
def test_every_product_is_numpys(data):
    counts = data.draw(st.tuples(*[st.integers(0, 2)] * 4))
    letters = iter("abcdefgh")
    stack, rows, columns, depth = ([next(letters) for _ in range(n)] for n in counts)
    left = "".join(data.draw(st.permutations([*stack, *rows, *depth])))
    right = "".join(data.draw(st.permutations([*stack, *columns, *depth])))
    after = "".join(data.draw(st.permutations([*stack, *rows, *columns])))
    if not (left and right and after):
        return
    equation = f"{left},{right}->{after}"
    graph = einsum_graph(equation)
    assert "MatMul" in operators(expand_einsum(graph))
    found, arrays = results(graph)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("equation", ["bij, bjk -> bik", "bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk"])
def test_attention_written_with_it_has_no_einsum(equation):
    lengths = dict(zip("bijkhqd", (2, 3, 4, 5, 2, 3, 4), strict=True))
    graph = einsum_graph(equation, lengths=lengths)
    assert set(operators(expand_einsum(graph))) <= {"MatMul", "Transpose"}
    found, arrays = results(graph)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("equation", ["aa,ab->b", "ab,cd->ad", "ab,bd->ad"])
def test_what_is_no_product_of_matrices_stays(equation):
    lengths = {**LENGTHS, "a": 2} if equation != "aa,ab->b" else {"a": 2, "b": 3}
    graph = einsum_graph(equation, lengths=lengths)
    assert ("Einsum" in operators(expand_einsum(graph))) == (equation != "ab,bd->ad")
    found, arrays = results(graph)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-4, atol=1e-5)
