"""Rules for the shapes of a node's operands that onnx's inference does not check."""

from tightship.graph.operands.operands import MisfitError, OpenShapeError, Operands
from tightship.graph.operators import body


def misfit(operator: str, operands: Operands) -> str | None:
    """Return why operands do not fit each other; None if known lengths allow them."""
    rule = body("operands", operator)
    try:
        if rule is not None:
            rule(operands)
    except MisfitError as error:
        return str(error)
    except OpenShapeError:
        pass
    return None


__all__ = ["MisfitError", "Operands", "misfit"]
