"""Backward path: writes gradient nodes into the same graph as the forward ones."""

from tightship.graph.backward.batch_statistics import with_batch_statistics
from tightship.graph.backward.differentiate import backward, constants_read, parameters
from tightship.graph.backward.dropout import DROPOUT, with_dropout
from tightship.graph.backward.layer import layer_node
from tightship.graph.backward.loss import IGNORED, with_cross_entropy, with_squared_error
from tightship.graph.backward.operators import DOMAIN, OPERATORS
from tightship.graph.backward.update import (
    GATHERED,
    NORM,
    STEP,
    with_gathered,
    with_norm,
    with_running_statistics,
    with_totals,
    with_updates,
)
from tightship.graph.optimizer import Adam, Optimizer, Sgd, state_of

__all__ = [
    "DOMAIN",
    "DROPOUT",
    "GATHERED",
    "IGNORED",
    "NORM",
    "OPERATORS",
    "STEP",
    "Adam",
    "Optimizer",
    "Sgd",
    "backward",
    "constants_read",
    "layer_node",
    "parameters",
    "state_of",
    "with_batch_statistics",
    "with_cross_entropy",
    "with_dropout",
    "with_gathered",
    "with_norm",
    "with_running_statistics",
    "with_squared_error",
    "with_totals",
    "with_updates",
]
