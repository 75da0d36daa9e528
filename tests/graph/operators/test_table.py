"""Views of the table are what was listed by hand before."""

import pytest

from tightship.engine.kernels.elementwise import UFUNCS
from tightship.engine.kernels.gradient import GRADIENT_BUILDERS
from tightship.engine.kernels.objects import ALONE, CONTROL, OPTIONAL
from tightship.engine.kernels.select import BUILDERS
from tightship.engine.lower.native import NATIVE_EMITTERS
from tightship.engine.lower.onednn import EMITTERS, QUANTIZED_EMITTERS
from tightship.engine.lower.onednn.elementwise_gradient import ALGORITHMS
from tightship.engine.lower.onednn.post_ops import BINARY
from tightship.engine.lower.passes.rewrite import OPTIONAL_OUTPUTS
from tightship.engine.lower.passes.widen_floats import COMPUTING, MOVING, PRODUCTS
from tightship.engine.lower.steps.fused_nodes import ACTIVATIONS
from tightship.engine.plan.footprint import BLAS_KERNELS
from tightship.engine.plan.ordered_program import AT_RANDOM
from tightship.engine.template.values import EVALUATE
from tightship.frontend.onnx.evaluate import EVALUATORS
from tightship.graph import operators
from tightship.graph.backward import control, rules
from tightship.graph.consumed import _lines
from tightship.graph.layer import TRAINING
from tightship.graph.operands import RULES as OPERANDS
from tightship.graph.operators.row import OF_SHAPES, STEPS, Category, Half
from tightship.graph.operators.shapes.rules import RULES as SHAPES
from tightship.graph.operators.table import FAMILIES, body, named, rows

OBJECTS = {**CONTROL, **ALONE, **OPTIONAL}
GRADIENTS = {**rules.RULES, **control.CONTROL}
NUMPY = {
    **{("", name): body for name, body in BUILDERS.items()},
    **{(TRAINING, name): body for name, body in GRADIENT_BUILDERS.items()},
}
BODIES = {
    "numpy": NUMPY,
    "native": NATIVE_EMITTERS,
    "onednn": EMITTERS,
    "quantized": QUANTIZED_EMITTERS,
    "gradient": GRADIENTS,
    **{
        column: {("", name): body for name, body in table.items()}
        for column, table in (
            ("objects", OBJECTS), ("operands", OPERANDS), ("shape", SHAPES),
            ("known", EVALUATORS), ("lengths", EVALUATE),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("column", BODIES)
def test_bodies_are_those_listed(column: str) -> None:
    table = BODIES[column]
    assert {(d, name) for d in FAMILIES for name in named(column, d)} == set(table)
    for (domain, name), found in table.items():
        made = body(column, name, domain)
        assert made is found or made.__qualname__ == found.__qualname__ != "", name


def chosen(**facts: object) -> set[str]:
    return {
        name
        for name, row in rows().items()
        if all(getattr(row, column) == value for column, value in facts.items())
    }


def test_sets_are_those_listed() -> None:
    assert chosen(category=Category.ELEMENTWISE) == operators.ELEMENTWISE
    assert chosen(category=Category.RESHAPING) == operators.RESHAPING
    assert chosen(category=Category.CUTTING) == operators.CUTTING
    assert chosen(category=Category.LOSS) == operators.LOSSES
    assert chosen(category=Category.NORMALIZING) == operators.NORMALIZING & set(rows())
    assert chosen(half=Half.MOVED) == MOVING
    assert chosen(half=Half.FLOAT32) == COMPUTING
    assert chosen(is_product=True, half=Half.FLOAT32) == PRODUCTS
    assert {f"numpy:{name}" for name in chosen(is_product=True) & set(BUILDERS)} == BLAS_KERNELS
    assert chosen(is_random=True) == AT_RANDOM
    assert chosen(trims=True) == OPTIONAL_OUTPUTS
    assert chosen(gradient=OF_SHAPES) == rules.OF_SHAPES
    assert chosen(gradient=STEPS) == rules.FLAT - rules.OF_SHAPES
    assert {name: row.binary for name, row in rows().items() if row.binary} == {
        **BINARY,
        "Sum": "add",
    }
    assert {name: " ".join((name, row.reads)) for name, row in rows().items()} == _lines()
    assert {name for name, row in rows(TRAINING).items() if row.category is not Category.OTHER} == (
        operators.UPDATES
    )


def test_algorithms_are_those_listed() -> None:
    for domain, listed in (("", ACTIVATIONS), (TRAINING, ALGORITHMS)):
        found = {name: row.eltwise for name, row in rows(domain).items() if row.eltwise}
        assert found.keys() == listed.keys()
        for name, (algorithm, _, alpha, _, beta) in listed.items():
            made = found[name]
            assert (made.algorithm, made.alpha, made.beta) == (algorithm, alpha, beta)


def test_functions_of_numpy_are_those_listed() -> None:
    found = {
        name: row.numpy.rpartition(":")[2]
        for name, row in rows().items()
        if row.numpy.startswith("elementwise.ufunc:")
    }
    assert found == {name: ufunc.__name__ for name, ufunc in UFUNCS.items()}
