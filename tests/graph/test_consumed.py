"""The table of what is read of each operator names all that onnx's schemas have."""

from collections import defaultdict
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, defs, helper

import tightship
from tightship.errors import GraphError
from tightship.graph.consumed import IDLE, Consumed, consumed
from tightship.graph.operators import rows

CONSUMED: dict[str, Consumed] = {o: row for o in rows() if (row := consumed(o))}
ANY_NUMBER = 1000
"""Number of inputs that every schema without a limit exceeds."""


def schemas() -> dict[str, list[Any]]:
    """Return every version of every operator of ONNX's own domain."""
    found: dict[str, list[Any]] = defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated:
            found[schema.name].append(schema)
    return found


def test_the_table_has_every_operator_attribute_and_input() -> None:
    known = schemas()
    assert set(known) <= set(CONSUMED)
    for operator, versions in known.items():
        row = CONSUMED[operator]
        names = {name for schema in versions for name in schema.attributes}
        assert row.attributes | set(row.only) | row.idle == names, operator
        most = max(schema.max_input for schema in versions)
        assert row.inputs == (None if most > ANY_NUMBER else most), operator


def test_what_is_idle_has_a_reason() -> None:
    assert {name for row in CONSUMED.values() for name in row.idle} == set(IDLE)


def test_the_default_of_a_limited_attribute_is_supported_or_missing() -> None:
    """`is_test` is 0 where it is missing; files for inference leave it out, as onnx's do."""
    for operator, versions in schemas().items():
        for schema in versions:
            for name in CONSUMED[operator].only.keys() & schema.attributes.keys():
                default = AttributeProto.FromString(schema.attributes[name]._default_value)
                assert name == "is_test" or default.i in CONSUMED[operator].only[name]


def model(operator: str, version: int, inputs: int, **attributes: Any) -> bytes:
    names = [f"x{place}" for place in range(inputs)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], "node", **attributes)], "g",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in names],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (model("Dropout", 6, 1, is_test=0), "`is_test` = 0; only 1 is supported"),
        (model("BatchNormalization", 7, 5, spatial=0), "`spatial` = 0; only 1 is supported"),
        (model("Relu", 14, 1, unheard=1), "the attribute `unheard`"),
        (model("Identity", 14, 1, unheard=1), "the attribute `unheard`"),
        (model("Relu", 14, 2), "`x1` as input 1; 1 inputs are supported"),
        (
            model("LayerNormalization", 17, 2, stash_type=11),
            "`stash_type` = 11; only 1 or 10 or 16 is supported",
        ),
    ],
)
def test_what_is_not_read_is_refused_by_its_name(data: bytes, what: str) -> None:
    with pytest.raises(GraphError, match=rf"Node `node` \(\w+\) has {what}.*Export the model"):
        tightship.load(data)


def test_computing_in_the_type_of_the_input_needs_no_attribute_read() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (double[2,4] x, double[4] s) => (double[2,4] y)'
        "{ y = LayerNormalization <stash_type = 11> (x, s) }"
    )
    with tightship.load(onnx.parser.parse_model(text).SerializeToString()) as loaded:
        assert loaded.plan.is_exact


def test_a_model_for_inference_of_an_old_opset_runs() -> None:
    with tightship.load(model("Dropout", 6, 1, is_test=1, ratio=0.3)) as loaded:
        assert loaded.plan.is_exact
