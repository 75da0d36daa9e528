"""Decomposition of ONNX Runtime's own operators into ONNX's when a file is read."""

from collections.abc import Iterator, Mapping

from onnx import NodeProto, TypeProto, helper

from tightship.errors import GraphError
from tightship.frontend.onnx.contrib.activations import ACTIVATIONS
from tightship.frontend.onnx.contrib.attention import ATTENTION
from tightship.frontend.onnx.contrib.grouped_attention import GROUPED_ATTENTION
from tightship.frontend.onnx.contrib.normalization import (
    NORMALIZATIONS,
    OLD_LAYER_NORMALIZATION,
)
from tightship.frontend.onnx.contrib.own import OWN
from tightship.frontend.onnx.contrib.pattern import OPSET, OWN_DOMAIN, Around, Pattern
from tightship.frontend.onnx.contrib.products import PRODUCTS
from tightship.frontend.onnx.contrib.quantized import QUANTIZED
from tightship.frontend.onnx.contrib.quantized_weights import QUANTIZED_WEIGHTS
from tightship.frontend.onnx.contrib.translation import Translation
from tightship.frontend.onnx.schema import Opsets, label, normal_domain, read_opsets

DOMAIN = "com.microsoft"
FIRST_LAYER_NORMALIZATION = 17
"""First opset with the operator; ONNX Runtime writes it into files of older ones too."""

TRANSLATIONS: dict[tuple[str, str], Translation] = {
    **{
        (DOMAIN, operator): translation
        for table in (
            ACTIVATIONS,
            ATTENTION,
            GROUPED_ATTENTION,
            NORMALIZATIONS,
            PRODUCTS,
            QUANTIZED,
            QUANTIZED_WEIGHTS,
        )
        for operator, translation in table.items()
    },
    **{(OWN_DOMAIN, operator): translation for operator, translation in OWN.items()},
    ("", "SimplifiedLayerNormalization"): NORMALIZATIONS["SimplifiedLayerNormalization"],
}
"""Translations by domain and operator."""

OPSETS = read_opsets(
    [helper.make_opsetid("", OPSET), helper.make_opsetid(OWN_DOMAIN, 1)], "A contributed operator"
)


Typed = tuple[NodeProto, TypeProto | None]
"""Node, and the type of its only output if its operator is not ONNX's."""


def spelled(node: NodeProto, opsets: Opsets, around: Around) -> Iterator[Typed] | None:
    """Return the decomposition of an ONNX Runtime node in opsets `OPSETS`; None for other nodes.

    Raises:
        GraphError: The operator or one of its options is not supported; the message lists what is.
    """
    domain = normal_domain(node.domain)
    translation = TRANSLATIONS.get((domain, node.op_type))
    if not domain and node.op_type == "LayerNormalization":
        is_old = opsets.versions.get("", 1) < FIRST_LAYER_NORMALIZATION
        translation = OLD_LAYER_NORMALIZATION if is_old else None
    if translation is not None:
        pattern = Pattern(node, around, translation)
        translation.spell(pattern)
        return _typed(pattern.finished(), pattern.types)
    if domain == DOMAIN:
        known = ", ".join(sorted(operator for each, operator in TRANSLATIONS if each == domain))
        raise GraphError(
            f"Node {label(node)} uses operator `{node.op_type}` of domain `{DOMAIN}`, which is not "
            f"supported; supported are {known}. Export the model without it."
        )
    return None


def _typed(nodes: list[NodeProto], types: Mapping[str, TypeProto]) -> Iterator[Typed]:
    for node in nodes:
        yield node, types[node.output[0]] if node.domain == OWN_DOMAIN else None
