"""Operations of steps, by which plans are compared."""

from tests.engine.graphs import graph_of, lowered
from tests.models import filled
from tightship.engine.plan.step_operations import OPERATIONS_PER_BYTE, step_operations

NUMPY = ("onednn", "native")
TEXT = """net (float[4, 32] x) => (float[4, 8] y) {
    h = MatMul (x, w)
    y = Relu (h)
}"""


def test_a_product_counts_its_multiplications_and_bytes():
    program = lowered(graph_of(TEXT, w=filled(32, 8)), NUMPY)
    found = {step.operator.split("+")[0]: step_operations(step) for step in program.steps}
    moved = 4 * (4 * 32 + 32 * 8 + 4 * 8)
    assert found["MatMul"] == 2 * 4 * 32 * 8 + OPERATIONS_PER_BYTE * moved
    assert found.get("Relu", OPERATIONS_PER_BYTE * 8 * 32) == OPERATIONS_PER_BYTE * 8 * 32
