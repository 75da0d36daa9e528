"""A graph becomes kernels: passes over the graph, then kernels, layouts and scratch."""

from tightship.engine.lower.passes import pass_names, run_passes
from tightship.engine.lower.select import lower

__all__ = ["lower", "pass_names", "run_passes"]
