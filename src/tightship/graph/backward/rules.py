"""Gradient rules by operator, and the operators that have none."""

from collections.abc import Mapping

from tightship.graph.backward.activation import ACTIVATIONS
from tightship.graph.backward.attention import ATTENTIONS
from tightship.graph.backward.convolution import CONVOLUTIONS
from tightship.graph.backward.dropout import DROPOUTS
from tightship.graph.backward.elementwise import ELEMENTWISE
from tightship.graph.backward.gradient_context import Rule
from tightship.graph.backward.layer import differentiate_layer
from tightship.graph.backward.loss import LOSSES
from tightship.graph.backward.movement import MOVEMENTS
from tightship.graph.backward.normalization import NORMALIZATIONS, OWN_NORMALIZATIONS
from tightship.graph.backward.operators import DOMAIN
from tightship.graph.backward.product import PRODUCTS
from tightship.graph.backward.recurrent import RECURRENT
from tightship.graph.backward.reduction import REDUCTIONS
from tightship.graph.backward.resize import RESIZES
from tightship.graph.backward.scatter import SCATTERS

_OF_ONNX: Mapping[str, Rule] = {
    **ACTIVATIONS,
    **ATTENTIONS,
    **CONVOLUTIONS,
    **ELEMENTWISE,
    **LOSSES,
    **MOVEMENTS,
    **NORMALIZATIONS,
    **PRODUCTS,
    **REDUCTIONS,
    **RECURRENT,
    **RESIZES,
    **SCATTERS,
}

RULES: Mapping[tuple[str, str], Rule] = {
    **{("", operator): rule for operator, rule in _OF_ONNX.items()},
    **{(DOMAIN, operator): rule for operator, rule in {**DROPOUTS, **OWN_NORMALIZATIONS}.items()},
    (DOMAIN, "Layer"): differentiate_layer,
}
"""Rules by domain and operator."""

OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators that read no elements."""

FLAT = OF_SHAPES | {"Ceil", "ConstantOfShape", "Floor", "Hardmax", "Round", "Sign"}
"""Operators whose results do not change with a small change of their inputs."""
