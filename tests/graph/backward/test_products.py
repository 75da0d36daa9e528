from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.backward.differences import check, graph_of, numbers

LENGTHS = st.integers(1, 3)


@st.composite
def operands(draw):
    """Shapes of two operands of MatMul, broadcast along leading axes or plain vectors."""
    rows, inner, columns = (draw(LENGTHS) for _ in range(3))
    batch = draw(st.lists(LENGTHS, max_size=2))
    left = [draw(st.sampled_from([n, 1])) for n in batch[draw(st.integers(0, len(batch))) :]]
    right = [draw(st.sampled_from([n, 1])) for n in batch[draw(st.integers(0, len(batch))) :]]
    a = (*left, rows, inner) if left or draw(st.booleans()) else (inner,)
    b = (*right, inner, columns) if right or draw(st.booleans()) else (inner,)
    return a, b


def text(shape):
    return ",".join(map(str, shape))


@given(operands())
@settings(max_examples=60)
def test_operands_of_a_product_have_their_slopes_however_they_are_broadcast(shapes):
    a, b = map(text, shapes)
    graph = graph_of(f"net (double[{a}] a, double[{b}] b) => (double y) {{ y = MatMul (a, b) }}")
    check(graph, numbers(graph), graph.inputs)


@given(st.tuples(LENGTHS, LENGTHS, LENGTHS), st.booleans(), st.booleans(), st.sampled_from("sbrm"))
@settings(max_examples=40)
def test_so_have_those_of_gemm_and_its_sum(lengths, transpose_a, transpose_b, summand):
    rows, inner, columns = lengths
    a = text((inner, rows) if transpose_a else (rows, inner))
    b = text((columns, inner) if transpose_b else (inner, columns))
    c = {"s": "1", "b": f"{columns}", "r": f"{rows},1", "m": f"{rows},{columns}"}[summand]
    flags = f"transA = {int(transpose_a)}, transB = {int(transpose_b)}, alpha = 0.7, beta = 1.3"
    graph = graph_of(
        f"net (double[{a}] a, double[{b}] b, double[{c}] c) => (double y) "
        f"{{ y = Gemm <{flags}> (a, b, c) }}"
    )
    check(graph, numbers(graph), graph.inputs)


def test_the_gradient_of_a_weight_is_one_product_of_all_rows():
    graph = graph_of("net (double[2,3,4] a, double[4,5] b) => (double y) { y = MatMul (a, b) }")
    made = check(graph, numbers(graph), ["b"])
    heavy = [node.operator for node in made.nodes[1:] if node.operator != "Reshape"]
    assert heavy == ["Gemm"]
