"""Fuses additions and other binary operations into the kernel of their later operand."""

from tightship.engine.lower.passes.fuse import HEADS, Candidate, fuse
from tightship.graph import Graph
from tightship.graph.operators import row_of

ORDERED = frozenset({"Sub", "Div"})


def fuse_residual(graph: Graph) -> Graph:
    """Fuse every binary operation that alone reads one operand, a kernel's result."""
    return fuse(graph, _accepts)


def _accepts(candidate: Candidate) -> bool:
    head, follower = candidate.head, candidate.follower
    if (
        head.operator not in HEADS
        or not row_of(follower).binary
        or follower.domain
        or len(follower.inputs) != 2
        or "axis" in follower.attributes
        or not candidate.keeps_shape
        or (follower.operator in ORDERED and follower.inputs[0] != candidate.name)
    ):
        return False
    other = follower.inputs[1 if follower.inputs[0] == candidate.name else 0]
    return candidate.is_float32(other) and candidate.exists_before_head(other)
