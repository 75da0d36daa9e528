"""Computes the memory of a graph's tensors by technique: the memory note's cost script."""

from tightship.cost.batch import largest_batch, with_batch
from tightship.cost.model_cost import (
    ModelCost,
    Row,
    arena_and_rest_bytes,
    cost_of,
    training_bytes,
)

__all__ = [
    "ModelCost",
    "Row",
    "arena_and_rest_bytes",
    "cost_of",
    "largest_batch",
    "training_bytes",
    "with_batch",
]
