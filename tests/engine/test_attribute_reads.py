"""Every attribute that a node sets is read by whatever takes the node: no kind of kernel skips one.

ONNX's node suite and `attribute_samples` set each attribute of each operator that our own code
computes; each is run by every kind of kernel that takes it.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, defs, helper

import tightship
from tests.engine.attribute_reads import Recording, recorded
from tests.engine.attribute_samples import SAMPLES, Sample
from tests.engine.kernels.node_suite import Case, cases
from tests.frontend.misfits import model_of
from tests.graph.test_consumed import CONSUMED
from tightship.errors import GraphError
from tightship.graph.operators import named

TIERS = ((), ("onednn",), ("onednn", "native"))
"""Passes left out, so that each kind of kernel gets its turn."""
ELSEWHERE_RUN = {"Constant", "If", "Loop", "Scan", "SequenceMap"} | {
    name for name in named("objects") if name.startswith("Optional")
}
OWN = (
    named("numpy") | named("objects") | named("known") | named("native") | named("onednn")
    | named("quantized")
) - ELSEWHERE_RUN  # fmt: skip
"""Operators that our own code computes; `onnx.reference` is given all attributes of others, and
the reader makes constants of Constant."""
ELSEWHERE = {
    ("BatchNormalization", "momentum"): "in training, by `onnx.reference`",
    ("BatchNormalization", "training_mode"): "in training, by `onnx.reference`",
    ("CastLike", "round_mode"): "only of float8e8m0, which onnx runs by `onnx.reference` alone",
    ("Dropout", "ratio"): "in training alone; inference keeps every element",
    ("Dropout", "seed"): "in training alone; inference keeps every element",
    ("StringSplit", "delimiter"): "of strings: `tests/engine/test_strings.py`",
    ("StringSplit", "maxsplit"): "of strings: `tests/engine/test_strings.py`",
    ("Upsample", "height_scale"): "of opset 1, which no kernel takes",
    ("Upsample", "width_scale"): "of opset 1, which no kernel takes",
}
"""Attributes that no sample sets, and where they are read."""
RESHAPING = frozenset({"Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze"})
"""The output is the input's bytes, and its shape says the attributes."""


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def set_of(operator: str, version: int, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that are not at their defaults."""
    schema = defs.get_schema(operator, version, "")
    found = {}
    for name, value in attributes.items():
        default = AttributeProto.FromString(schema.attributes[name]._default_value)
        usual = _plain(helper.get_attribute_value(default)) if default.type else 0
        if _plain(value) != usual:
            found[name] = value
    return found


def usable(case: Case) -> bool:
    given = [each for each in case.inputs if each is not None]
    return (
        case.node.operator in OWN
        and not case.node.domain
        and case.is_numeric
        and all(isinstance(each, np.ndarray) for each in given)
    )


def nodes() -> Iterator[tuple[str, int, dict[str, Any], bytes, dict[str, Any]]]:
    """Yield operator, opset, attributes that are set, model and feeds."""
    seen = set()
    for case in filter(usable, cases()):
        chosen = set_of(case.node.operator, case.node.version, dict(case.node.attributes))
        kinds = tuple(each.dtype.kind for each in case.inputs if each is not None)
        key = case.node.operator, frozenset(chosen), kinds
        if chosen and key not in seen:
            seen.add(key)
            model, feeds = model_of(case, case.inputs, "plain")
            model = model.SerializeToString()
            yield case.node.operator, case.node.version, chosen, model, feeds
    for each in SAMPLES:
        chosen = set_of(each.operator, each.version, each.attributes)
        yield each.operator, each.version, chosen, each.model(), each.feeds


def matters(operator: str, name: str, feeds: dict[str, Any]) -> bool:
    """Return whether kernels must read an attribute of a node."""
    if name == "axis" and operator in ("DequantizeLinear", "QuantizeLinear"):
        return any(each.size > 1 for each in list(feeds.values())[1:2])
    row = CONSUMED[operator]
    return operator not in RESHAPING and name in row.attributes - row.typed


@functools.cache
def results() -> tuple[dict[tuple[str, str], set[str]], list[str]]:
    """Return what took nodes that set an attribute, and the attributes that were not read."""
    taken: dict[tuple[str, str], set[str]] = defaultdict(set)
    wrong = []
    for operator, version, chosen, model, feeds in nodes():
        is_of_library = operator in named("onednn") | named("quantized")
        for without in TIERS if is_of_library else TIERS[1:]:
            try:
                with recorded() as reads, tightship.load(model, without=without) as loaded:
                    reads.loaded()
                    loaded.run(feeds)
            except GraphError:
                continue
            for name in chosen:
                taken[operator, name] |= set(reads.taken)
            left = {name for name in chosen if matters(operator, name, feeds)}
            for kind, names in reads.unread(left).items():
                wrong.append(f"{operator} of opset {version}, {kind}: {sorted(names)}")
    return taken, wrong


def test_every_attribute_is_read_by_whatever_takes_its_node() -> None:
    assert not results()[1]


def test_every_attribute_of_our_own_operators_is_set_by_a_node() -> None:
    wanted = {
        (operator, name)
        for operator in OWN
        for name in CONSUMED[operator].attributes - CONSUMED[operator].typed
    }
    assert wanted - set(results()[0]) <= set(ELSEWHERE)
    assert all(name in CONSUMED[operator].attributes for operator, name in ELSEWHERE)


@pytest.mark.parametrize("place", range(len(SAMPLES)), ids=lambda i: SAMPLES[i].operator)
def test_kinds_of_kernels_agree_on_a_sample(place: int) -> None:
    sample: Sample = SAMPLES[place]
    outputs = []
    for without in TIERS:
        with tightship.load(sample.model(), without=without) as loaded:
            outputs.append(loaded.run(sample.feeds))
    for other in outputs[1:]:
        for name, array in outputs[0].items():
            found, wanted = (np.asarray(each, np.float64) for each in (other[name], array))
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


def test_an_attribute_that_is_not_read_is_found() -> None:
    with recorded() as reads:
        reads.note("kernel", _Node({"axis": 1, "alpha": 2.0}), {"axis"})
    assert reads.unread({"axis", "alpha"}) == {"kernel": {"alpha"}}


class _Node:
    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = Recording(attributes)
