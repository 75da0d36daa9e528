"""Attributes and inputs that translations read and list; all others are refused by name."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper

import tightship
from tests.frontend.onnx.contrib import samples
from tests.frontend.onnx.contrib.case import Case, normal
from tightship.errors import GraphError
from tightship.frontend.onnx.contrib import TRANSLATIONS
from tightship.frontend.onnx.contrib.normalization import OLD_LAYER_NORMALIZATION
from tightship.frontend.onnx.contrib.pattern import OWN_DOMAIN, Around, Pattern
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation, parameters

KNOWN = {**TRANSLATIONS, ("", "LayerNormalization"): OLD_LAYER_NORMALIZATION}
TABLE = {key: each for key, each in KNOWN.items()
         if key != samples.ALSO and key[0] != OWN_DOMAIN}  # fmt: skip
PLAIN = [AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING]


def spelled(case: Case, translation: Translation) -> Pattern:
    """The translation of a case's node, finished."""
    model = onnx.load_from_string(case.model)
    types = {value.name: value.type for value in model.graph.input}
    for tensor in model.graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    around = Around(types.__getitem__, set(case.weights).__contains__, {})
    pattern = Pattern(model.graph.node[0], around, translation)
    translation.spell(pattern)
    pattern.finished()
    return pattern


@pytest.mark.parametrize("key", TABLE, ids=lambda key: key[1])
def test_a_table_equals_what_its_translation_reads(key: tuple[str, str]) -> None:
    translation = TABLE[key]
    attributes: set[str] = set()
    inputs: set[int] = set()
    outputs: set[int] = set()
    for case in samples.CASES[key[1]]:
        pattern = spelled(case, translation)
        attributes |= pattern.attributes_read
        inputs |= pattern.inputs_read
        outputs |= {place for place, name in enumerate(case.outputs) if name}
    assert attributes == set(translation.attributes)
    for text, places in ((translation.inputs, inputs), (translation.outputs, outputs)):
        known = parameters(text)
        assert {p for p in range(len(known)) if not known[p].is_refused} == {
            place for place in places if place < len(known)
        }


@pytest.mark.parametrize("key", TABLE, ids=lambda key: key[1])
def test_a_table_agrees_with_onnxruntime(key: tuple[str, str]) -> None:
    translation, schema = TABLE[key], schema_of(*key)
    for text, formal in (
        (translation.inputs, schema.inputs),
        (translation.outputs, schema.outputs),
    ):
        found = [(each.name, each.is_optional or each.is_refused) for each in parameters(text)]
        known = [(each.name, str(each.option).endswith("Optional")) for each in formal]
        assert found == known[: len(found)]
    for name, default in translation.attributes.items():
        attribute = schema.attributes[name]
        assert attribute.required == (default == REQUIRED)
        if default_of(attribute) is not None:
            assert default == pytest.approx(default_of(attribute)), name
    assert {*translation.only, *translation.idle} <= set(schema.attributes)
    for name, allowed in translation.only.items():
        assert default_of(schema.attributes[name]) in (None, *allowed)


def schema_of(domain: str, operator: str) -> Any:
    """ONNX Runtime's own schema."""
    bindings = pytest.importorskip("onnxruntime.capi._pybind_state")
    found = [
        s for s in bindings.get_all_operator_schema() if (s.domain, s.name) == (domain, operator)
    ]
    return min(found, key=lambda schema: schema.since_version)


def default_of(attribute: Any) -> Any:
    proto = AttributeProto.FromString(attribute._default_value)
    value = helper.get_attribute_value(proto) if proto.type in PLAIN else None
    return value.decode() if isinstance(value, bytes) else value


def with_another_option() -> Iterator[Any]:
    """A case for each option that only some values are supported of, with another value."""
    for (_, operator), translation in TABLE.items():
        case = samples.CASES[operator][0]
        for name, allowed in translation.only.items():
            other = "INT8" if isinstance(allowed[0], str) else type(allowed[0])(7)
            changed = replace(case, attributes={**case.attributes, name: other})
            yield pytest.param(changed, name, id=f"{operator}-{name}")
        unheard = replace(case, attributes={**case.attributes, "unheard": 1})
        yield pytest.param(unheard, "unheard", id=f"{operator}-unheard")


def with_another_operand() -> Iterator[Any]:
    """A case for each input and output that is not supported, which has it."""
    for (_, operator), translation in TABLE.items():
        case = samples.CASES[operator][0]
        for place, each in enumerate(parameters(translation.inputs)):
            if each.is_refused:
                names = [*case.inputs][:place]
                given = {**{n: case.inputs[n] for n in names}, **dict.fromkeys(
                    (f"absent{i}" for i in range(len(names), place)), None)}  # fmt: skip
                weights = tuple(name for name in case.weights if name in given)
                changed = replace(case, inputs={**given, "more": normal(3)}, weights=weights)
                yield pytest.param(changed, each.name, id=f"{operator}-{each.name}")
        for place, each in enumerate(parameters(translation.outputs)):
            if each.is_refused:
                empty = ("",) * (place - len(case.outputs))
                changed = replace(case, outputs=(*case.outputs[:place], *empty, "more"))
                yield pytest.param(changed, each.name, id=f"{operator}-{each.name}")


@pytest.mark.parametrize(("case", "name"), [*with_another_option(), *with_another_operand()])
def test_what_no_translation_reads_is_refused_by_its_name(case: Case, name: str) -> None:
    with pytest.raises(GraphError, match=rf"`node` \({case.operator}\) has .*`{name}`.*export"):
        tightship.load(case.model)


@pytest.mark.parametrize("key", TABLE, ids=lambda key: key[1])
def test_what_a_translation_cannot_do_without_is_missed_by_its_name(key: tuple[str, str]) -> None:
    translation, case = TABLE[key], samples.CASES[key[1]][0]
    for name, default in translation.attributes.items():
        if default == REQUIRED:
            attributes = {n: value for n, value in case.attributes.items() if n != name}
            with pytest.raises(GraphError, match=f"lacks the attribute `{name}`"):
                tightship.load(replace(case, attributes=attributes).model)
    name = parameters(translation.inputs)[-1].name
    if not parameters(translation.inputs)[-1].is_optional:
        inputs = {
            n: case.inputs[n] for n in [*case.inputs][: len(parameters(translation.inputs)) - 1]
        }
        weights = tuple(each for each in case.weights if each in inputs)
        with pytest.raises(GraphError, match=f"lacks the input `{name}`"):
            tightship.load(replace(case, inputs=inputs, weights=weights).model)


def test_an_option_at_its_default_is_no_reason_to_refuse() -> None:
    case = samples.CASES["GroupQueryAttention"][0]
    given = {"causal": 1, "smooth_softmax": 0, "k_quant_type": "NONE", "sliding_window_cache": 0}
    with tightship.load(replace(case, attributes={**case.attributes, **given}).model) as model:
        assert np.isfinite(model.run(case.feeds)["y"]).all()


def test_an_option_that_a_way_of_the_translation_leaves_out_is_refused() -> None:
    inputs = {"a": normal(4, 6), "b": normal(6, 5)}
    case = Case("FusedGemm", inputs, {"activation": "Relu", "activation_alpha": 0.3})
    with pytest.raises(GraphError, match=r"`activation_alpha` = 0\.3.* beside its other options"):
        tightship.load(case.model)
