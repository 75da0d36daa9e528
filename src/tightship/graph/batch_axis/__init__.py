"""Follows the batch through a graph, and says which node does not let it be changed.

A value's batch axis is the one along which samples lie side by side, the batch outermost where a
Reshape has joined it with other axes. A node lets the batch change if it makes each sample of its
results of the same sample of its operands.
"""

from tightship.graph.batch_axis.follow import Batched, Repeated, Target, follow_batch
from tightship.graph.batch_axis.step import FixedBatchError

__all__ = ["Batched", "FixedBatchError", "Repeated", "Target", "follow_batch"]
