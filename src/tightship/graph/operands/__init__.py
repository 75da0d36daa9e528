"""Rules for the shapes of a node's operands that onnx's inference does not check."""

from collections.abc import Callable, Mapping

from tightship.graph.operands.indexed import INDEXED
from tightship.graph.operands.operands import MisfitError, OpenShapeError, Operands
from tightship.graph.operands.parameters import PARAMETERS
from tightship.graph.operands.quantized import QUANTIZED
from tightship.graph.operands.sequences import SEQUENCES
from tightship.graph.operands.windows import WINDOWS

RULES: Mapping[str, Callable[[Operands], None]] = {
    **INDEXED,
    **PARAMETERS,
    **QUANTIZED,
    **SEQUENCES,
    **WINDOWS,
}
"""Rules by operator of ONNX's own domain."""


def misfit(operator: str, operands: Operands) -> str | None:
    """Return why operands do not fit each other; None if known lengths allow them."""
    rule = RULES.get(operator)
    try:
        if rule is not None:
            rule(operands)
    except MisfitError as error:
        return str(error)
    except OpenShapeError:
        pass
    return None


__all__ = ["RULES", "MisfitError", "Operands", "misfit"]
