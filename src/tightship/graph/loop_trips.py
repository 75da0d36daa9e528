"""Computes how often the body of a Loop runs, if that is known before the run."""

from collections.abc import Callable, Sequence

from tightship.graph.constant import Constant
from tightship.graph.ir import Graph


def trip_count(
    inputs: Sequence[str], body: Graph, constant_of: Callable[[str], Constant | None]
) -> int | None:
    """Count the iterations of a Loop that ends only by its count; None if data may decide.

    Args:
        inputs: Inputs of the Loop.
        body: Body of the Loop.
        constant_of: Function that returns a value around the body, if it is known and small.
    """
    count, start = (constant_of(name) if name else None for name in inputs[:2])
    if count is None or count.array().size != 1 or (inputs[1] and not _is_true(start)):
        return None
    name = body.outputs[0]
    sources = {n.outputs[0]: n.inputs[0] for n in body.nodes if n.operator == "Identity"}
    while name in sources:
        name = sources[name]
    goes_on = name == body.inputs[1] or _is_true(body.constant(name) or constant_of(name))
    return max(0, int(count.array().item())) if goes_on else None


def _is_true(condition: Constant | None) -> bool:
    return condition is not None and bool(condition.array().all())
