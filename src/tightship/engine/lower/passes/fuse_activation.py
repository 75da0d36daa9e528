"""Fuses activations into the convolution, matmul or normalization before them."""

from tightship.engine.lower.passes.fold_batch_norm import is_inference_norm
from tightship.engine.lower.passes.fuse import HEADS, Candidate, fuse
from tightship.graph import Graph, Node
from tightship.graph.operators import row_of


def fuse_activation(graph: Graph) -> Graph:
    """Fuse every activation that alone reads a kernel's result."""
    return fuse(graph, _accepts)


def _accepts(candidate: Candidate) -> bool:
    head, follower = candidate.head, candidate.follower
    if follower.domain or not candidate.keeps_shape or follower.inputs[0] != candidate.name:
        return False
    if is_inference_norm(head):
        return follower.operator == "Relu" and not head.fused
    return head.operator in HEADS and _is_activation(follower)


def _is_activation(node: Node) -> bool:
    """Whether a product's kernel takes over a node; limits of a Clip may be inputs.

    It does not take over a Neg, with which a product runs on no split or streamed kernel.
    """
    return node.operator == "Clip" or (row_of(node).eltwise is not None and node.operator != "Neg")
