import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.passes.recognize_rotary import recognize_rotary
from tightship.engine.lower.pipeline import run_passes
from tightship.engine.lower.selection import lower

SHAPE = (2, 3, 5, 8)
HALVES = "a = Slice (t, zero, four, last) b = Slice (t, four, eight, last)"
SPLIT = "a, b = Split <axis = 3, num_outputs = 2> (t)"
NEIGHBOURS = "a = Slice (t, zero, eight, last, two) b = Slice (t, one, eight, last, two)"
TURNED = "n = Neg (b) r = Concat <axis = -1> (n, a)"
WHOLE = "p = Mul (t, cos) q = Mul (r, sin) y = Add (p, q)"
STACKED = "na = Unsqueeze (n, last) aa = Unsqueeze (a, last) s = Concat <axis = -1> (na, aa)"
APART = """ac = Mul (a, cos) bs = Mul (b, sin) u = Sub (ac, bs)
           as = Mul (a, sin) bc = Mul (b, cos) v = Add (as, bc)"""


def net(body, *, table=(5, 8), outputs="y", dtype="float"):
    """Build a graph from `t`, which is computed, to `y`; tables have the shape `table`."""
    number = {"float": np.float32, "double": np.float64}[dtype]
    weights = {
        "cos": filled(*table), "sin": filled(*table, 2)[..., 0], "zero": np.array([0]),
        "one": np.array([1]), "two": np.array([2]), "four": np.array([4]), "eight": np.array([8]),
        "last": np.array([-1]), "shape": np.array(SHAPE),
    }  # fmt: skip
    words = set(body.replace("(", " ").replace(")", " ").replace(",", " ").split())
    used = {n: v if v.dtype.kind == "i" else v.astype(number) for n, v in weights.items()}
    dims = ", ".join(map(str, SHAPE))
    declared = ", ".join(f"{dtype}[{dims}] {name}" for name in outputs.split())
    return graph_of(
        f"g ({dtype}[{dims}] x) => ({declared}) {{ t = Sin (x) {body} }}",
        **{name: value for name, value in used.items() if name in words},
    )


SPELLINGS = {
    "halves": (f"{HALVES} {TURNED} {WHOLE}", (5, 8)),
    "halves of a split": (f"{SPLIT} {TURNED} {WHOLE}", (1, 1, 5, 8)),
    "factors turned": (
        f"{HALVES} {TURNED} p = Mul (cos, t) q = Mul (sin, r) y = Add (q, p)", (3, 1, 8)
    ),
    "half tables": (f"{HALVES} {APART} y = Concat <axis = 3> (u, v)", (5, 4)),
    "neighbours": (f"{NEIGHBOURS} n = Neg (b) {STACKED} r = Reshape (s, shape) {WHOLE}", (5, 8)),
    "neighbours, half tables": (
        f"{NEIGHBOURS} {APART} na = Unsqueeze (u, last) aa = Unsqueeze (v, last) "
        "s = Concat <axis = -1> (na, aa) y = Reshape (s, shape)", (2, 1, 5, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("decomposition", SPELLINGS)
def test_a_pattern_of_a_rotary_embedding_becomes_it(decomposition):
    body, table = SPELLINGS[decomposition]
    graph = net(body, table=table)
    joined = recognize_rotary(graph)
    assert operators(joined) == ["Sin", "Rotary"]
    assert_close(run(joined), expected(graph))
    assert_close(run(joined, ("onednn",)), expected(graph))


def test_heads_are_turned_as_they_lie():
    graph = graph_of(
        f"""g (float[2, 5, 3, 8] x) => (float[2, 3, 5, 8] y) {{
            h = Sin (x) t = Transpose <perm = [0, 2, 1, 3]> (h) {HALVES} {TURNED} {WHOLE}
        }}""",
        cos=filled(5, 8), sin=filled(1, 5, 8), zero=np.array([0]), four=np.array([4]),
        eight=np.array([8]), last=np.array([-1]),
    )  # fmt: skip
    steps = [step.operator for step in lower(graph).steps]
    assert steps == ["Sin", "Rotary"]
    assert_close(run(graph), expected(graph))


def test_without_native_kernels_it_stays_decomposed():
    graph = net(SPELLINGS["halves"][0])
    assert "Rotary" in operators(run_passes(graph))
    assert_close(run(graph, ("native",)), expected(graph))


NEAR_MISSES = {
    "not negated": f"{HALVES} r = Concat <axis = -1> (b, a) {WHOLE}",
    "not swapped": f"{HALVES} n = Neg (a) r = Concat <axis = -1> (n, b) {WHOLE}",
    "negated last": f"{HALVES} n = Neg (a) r = Concat <axis = -1> (b, n) {WHOLE}",
    "of another value": f"{HALVES} {TURNED} p = Mul (x, cos) q = Mul (r, sin) y = Add (p, q)",
    "quarters": "a = Slice (t, zero, two, last) b = Slice (t, two, eight, last) "
                f"{TURNED} {WHOLE}",
    "added twice": f"{HALVES} {APART.replace('Sub', 'Add')} y = Concat <axis = 3> (u, v)",
    "subtracted twice": f"{HALVES} {APART.replace('Add', 'Sub')} y = Concat <axis = 3> (u, v)",
    "neighbours joined as halves": f"{NEIGHBOURS} {TURNED} {WHOLE}",
    "difference": f"{HALVES} {TURNED} p = Mul (t, cos) q = Mul (r, sin) y = Sub (p, q)",
}  # fmt: skip


@pytest.mark.parametrize("body", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_another_pattern_stays(body):
    table = (5, 4) if "ac" in body else (5, 8)
    graph = net(body, table=table)
    assert operators(recognize_rotary(graph)) == operators(graph)


def test_a_step_that_is_an_output_too_stays():
    graph = net(SPELLINGS["halves"][0], outputs="y r")
    assert operators(recognize_rotary(graph)) == operators(graph)


def test_other_types_stay():
    graph = net(SPELLINGS["halves"][0], dtype="double")
    assert operators(recognize_rotary(graph)) == operators(graph)


def test_numbers_joined_in_a_row_are_no_rotation():
    body = "c = Concat <axis = 0> (a, b) y = Reshape (c, s)"
    text = f"net (float[1] a, float[1] b) => (float[1,2] y) {{ {body} }}"
    graph = graph_of(text, s=np.array([1, 2]))
    assert operators(recognize_rotary(graph)) == ["Concat", "Reshape"]
