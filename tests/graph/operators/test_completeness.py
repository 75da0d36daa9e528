"""The operator table is complete: what an operator lacks is named here, or its row says why."""

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import defs, helper

import tightship
from tests.engine.kernels.node_suite import Case, kernel_for, known
from tests.frontend.misfits import model_of
from tests.graph.backward.test_rules import CASES
from tests.graph.operators.suite import suite
from tightship.engine.library import open_library
from tightship.engine.lower.selection import lower
from tightship.engine.plan.footprint import BLAS_KERNELS
from tightship.errors import GraphError
from tightship.frontend.onnx import read_bytes
from tightship.graph.operators import Category, body, find, named, rows
from tightship.graph.operators.shapes.shape_context import NoRuleError, ShapeContext
from tightship.graph.operators.table import FAMILIES
from tightship.planner import AliasKind

SOURCE = Path(tightship.__file__).parent
GRADIENTS = Path(__file__).parents[1] / "backward"


@functools.cache
def schemas() -> Mapping[str, defs.OpSchema]:
    """Return the newest version of every operator of ONNX's own domain."""
    found: dict[str, defs.OpSchema] = {}
    for schema in defs.get_all_schemas_with_history():
        last = found.get(schema.name)
        if not schema.domain and (last is None or last.since_version < schema.since_version):
            found[schema.name] = schema
    return found


def takes_halves(schema: defs.OpSchema) -> bool:
    types = (kind for each in schema.type_constraints for kind in each.allowed_type_strs)
    return not schema.deprecated and any("float16" in kind for kind in types)


def test_operators_are_those_of_onnx() -> None:
    assert set(rows()) == set(schemas())


def test_an_operator_of_halves_says_what_becomes_of_them() -> None:
    for name, schema in schemas().items():
        assert takes_halves(schema) or not find(name).half, f"`{name}` takes no halves"
        assert find(name).half or not takes_halves(schema), f"`{name}` needs `half` in its row"


def test_an_operator_has_a_gradient_or_a_reason() -> None:
    assert [name for name, row in rows().items() if not row.gradient] == []


DIFFERENCES = {
    "attention": "Attention",
    "control": "Cast If Loop Scan",
    "dropout": "Dropout",
    "losses": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "normalizations": "BatchNormalization GroupNormalization InstanceNormalization"
    " LayerNormalization RMSNormalization",
    "operators": "Swish",
    "products": "MatMul",
    "recurrent": "GRU LSTM RNN",
    "rules": "Celu Einsum",
    "windows": "AveragePool Conv ConvTranspose GlobalAveragePool GlobalMaxPool MaxPool",
}
"""Gradients that tests beside `test_rules.CASES` hold against differences, by module."""


def test_a_gradient_is_held_against_differences() -> None:
    bodies = " ".join(body for _, body in CASES.values())
    tried = set(re.findall(r"= (\w+) ?[(<]", bodies))
    for module, operators in DIFFERENCES.items():
        text = (GRADIENTS / f"test_{module}.py").read_text()
        tried |= {name for name in operators.split() if re.search(rf"\b{name}\b", text)}
    assert named("gradient") - tried == set()


def site_of(case: Case) -> ShapeContext:
    constants = known(case.node, case.inputs)
    return ShapeContext(
        case.node,
        tuple(None if each is None else each.shape for each in case.inputs),
        tuple(
            tuple(each.reshape(-1).tolist()) if each is not None and each.dtype.kind in "iub"
            else None for each in case.inputs
        ),
        tuple(constants.get(name) for name in case.node.inputs),
    )  # fmt: skip


SHAPELESS = {
    "sizes depend on elements": "Compress NonMaxSuppression NonZero StringSplit Unique",
    "runs graphs, or holds more than a tensor": "ConcatFromSequence If Loop Optional"
    " OptionalGetElement OptionalHasElement Scan SequenceAt SequenceConstruct SequenceEmpty"
    " SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence",
    "reads no tensor, or none whose lengths are open": "BlackmanWindow Constant HammingWindow"
    " HannWindow MelWeightMatrix RandomNormal RandomUniform",
    "has strings or images": "ImageDecoder RegexFullMatch StringConcat StringNormalizer"
    " TfIdfVectorizer",
    "has no rule yet": "AffineGrid CausalConvWithState CenterCropPad Col2Im DFT DeformConv"
    " Det GridSample LinearAttention MaxRoiPool MaxUnpool Multinomial RoiAlign"
    " NegativeLogLikelihoodLoss STFT SoftmaxCrossEntropyLoss SwiGLU Upsample",
}
"""Operators without a rule of shapes: a model with one has no template for open lengths."""


def test_an_operator_has_a_rule_of_shapes_or_a_reason() -> None:
    reasons = {name for names in SHAPELESS.values() for name in names.split()}
    assert set(rows()) - named("shape") == reasons


SHAPED_ELSEWHERE = frozenset(
    {"GlobalLpPool", "OneHot", "RandomNormalLike", "RandomUniformLike", "Range"}
)
"""Operators whose cases no rule takes, or that have none: `shapes/test_rules.py`."""


@pytest.mark.parametrize("operator", sorted(named("shape")))
def test_shapes_are_those_of_the_node_suite(operator: str) -> None:
    rule, reached = body("shape", operator), False
    for case in suite().get(operator, []):
        try:
            shapes = rule(site_of(case))
        except NoRuleError:
            continue
        reached = True
        for shape, array in zip(shapes, case.outputs, strict=False):
            assert array is None or tuple(shape) == array.shape, case.name
    assert reached != (operator in SHAPED_ELSEWHERE)


def may_overwrite(category: Category, output: int, source: int) -> bool:
    """Whether the table lets an output be in the bytes of an input."""
    if category is Category.ELEMENTWISE:
        return output == 0
    over_first = (Category.NORMALIZING, Category.RESHAPING, Category.REPLACING)
    return category in over_first and output == source == 0


@pytest.mark.parametrize("operator", sorted(named("numpy")))
def test_kernels_write_over_inputs_only_where_the_row_allows_it(operator: str) -> None:
    for case in suite().get(operator, []):
        kernel = kernel_for(case.node, case.inputs, case.outputs)
        for output, source in () if kernel is None else kernel.in_place:
            assert may_overwrite(find(operator).category, output, source), case.name


NEGATED = frozenset({"float32", "float64", "int32", "int64"})
"""Element types that Neg takes."""


def shared(case: Case, without: tuple[str, ...]) -> bool:
    """Whether a kernel may write a case's first output over its first input, which dies there."""
    model, _ = model_of(case, case.inputs, "constant")
    (node,), source = model.graph.node, case.node.inputs[0]
    if {case.inputs[0].dtype.name, case.outputs[0].dtype.name} - NEGATED:
        return False
    target = node.output[0]
    node.output[0] = "made"
    for place, name in enumerate(node.input):
        node.input[place] = "given" if name == source else name
    model.graph.node.insert(0, helper.make_node("Neg", [source], ["given"]))
    model.graph.node.append(helper.make_node("Neg", ["made"], [target]))
    try:
        lowered = lower(read_bytes(model.SerializeToString()), 1, without)
    except GraphError:
        return False
    step = next((s for s in lowered.steps if s.operator == case.node.operator), None)
    if step is None or not step.writes or step.operator == "Neg":
        return False
    written = step.writes[0].slot
    return any(each.kind is AliasKind.IN_PLACE and each.output == written for each in step.sharing)


@pytest.mark.parametrize("operator", sorted(named("native") & set(suite())))
def test_native_kernels_write_over_inputs_only_where_the_row_allows_it(operator: str) -> None:
    open_library()
    allowed = may_overwrite(find(operator).category, 0, 0)
    for case in suite()[operator]:
        if case.inputs and case.inputs[0] is not None and case.outputs[0] is not None:
            assert allowed or not shared(case, ("onednn",)), case.name


def test_native_kernels_do_write_over_inputs() -> None:
    open_library()
    assert shared(suite()["Tanh"][0], ("onednn",))


def test_products_of_numpy_are_those_that_take_memory_of_the_blas() -> None:
    products = {name for name in named("numpy") if find(name).is_product}
    assert {f"numpy:{name}" for name in products} == BLAS_KERNELS


TIERS = ((), ("onednn",), ("onednn", "native"))
"""Passes left out, so that each tier that has a body runs."""
COMPARED = sorted(
    name
    for name, row in rows().items()
    if sum(map(bool, (row.onednn or row.quantized, row.native, row.numpy))) > 1
)


@pytest.mark.parametrize("operator", COMPARED)
def test_tiers_agree_with_the_node_suite(operator: str) -> None:
    case = next(c for c in suite()[operator] if c.outputs[0] is not None)
    model, feeds = model_of(case, case.inputs, "plain")
    for without in TIERS:
        with tightship.load(model.SerializeToString(), without=without) as loaded:
            results = list(loaded.run(feeds).values())
        for found, wanted in zip(results, (o for o in case.outputs if o is not None), strict=True):
            np.testing.assert_allclose(
                np.asarray(found, np.float64), np.asarray(wanted, np.float64), 1e-3, 1e-5
            )


PATTERNS: Mapping[str, str] = {
    "names of foreign operators": "driver/nnapi/comparison driver/nnapi/elementwise"
    " frontend/jax/pointwise frontend/jax/reduction frontend/onnx/contrib/activations"
    " frontend/onnx/contrib/quantized frontend/same_names frontend/torch/gradient"
    " frontend/torch/pointwise frontend/torch/reduction",
    "patterns that a pass looks for": "engine/lower/passes/common_subexpressions"
    " engine/lower/passes/fuse engine/lower/passes/fuse_quantize"
    " engine/lower/passes/recognize_activation"
    " engine/lower/passes/recognize_normalization engine/lower/passes/recognize_quantized"
    " engine/lower/passes/index_algebra"
    " engine/lower/passes/polynomial engine/lower/passes/pool_means"
    " engine/lower/passes/sink_dequantize engine/lower/passes/split_recurrent"
    " engine/lower/pipeline engine/lower/steps/parts engine/state/counts"
    " engine/state/joined_masks engine/state/scattered graph/cut",
    "what emitters of products, and of these alone, can do": "engine/lower/native/split"
    " engine/lower/native/streamed engine/lower/onednn/elementwise engine/lower/selection"
    " engine/lower/replay engine/lower/steps/cost engine/lower/steps/alike_layers"
    " frontend/onnx/layers",
    "where operands have their dimensions": "cost/operations engine/plan/step_operations"
    " graph/recurrent_shapes engine/run/profile",
    "which elements stay zero, or finite, where rows are not in use": "engine/state/rules",
    "inputs that can be weights": "graph/backward/differentiate",
    "gaps of onnx: its inference, its reference": "frontend/onnx/control frontend/onnx/infer"
    " frontend/onnx/propagate engine/kernels/reference_texts",
    "a prepared model runs without the table": "engine/plan/footprint",
    "how large results can be whose shapes depend on data": "engine/lower/steps/data_bounds",
    "how operators keep the samples of a batch apart": "graph/batch_axis/movement"
    " graph/batch_axis/products graph/batch_axis/rules",
    "classes of ours, called as operators are": "graph/__init__",
}
"""Modules outside the table with lists of three or more operators, by the reason."""


def lists(tree: ast.AST, names: frozenset[str], docstrings: set[int]) -> Iterator[int]:
    """Lines of outermost literals that hold three or more names of operators."""
    for node in ast.iter_child_nodes(tree):
        if id(node) in docstrings:
            continue
        kinds = (ast.Dict, ast.Set, ast.List, ast.Tuple, ast.Constant)
        if isinstance(node, kinds):
            words = {
                word
                for each in ast.walk(node)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
                for word in each.value.split()
            }
            if len(words & names) >= 3:
                yield node.lineno  # type: ignore[attr-defined]
                continue
        yield from lists(node, names, docstrings)


def test_no_list_of_operators_is_typed_outside_the_table() -> None:
    names = frozenset(name for domain in FAMILIES for name in rows(domain))
    found: dict[str, list[int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).with_suffix("").as_posix()
        if place.startswith("graph/operators/"):
            continue
        tree = ast.parse(path.read_text())
        texts = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        if lines := list(lists(tree, names, texts)):
            found[place] = lines
    allowed = {place for places in PATTERNS.values() for place in places.split()}
    assert {place: lines for place, lines in found.items() if place not in allowed} == {}
    assert allowed - set(found) == set(), "a module that has no list any more needs no reason"
