"""Implements the memory note's planning methods for comparison, as pure functions of a schedule."""

from tightship.planner.scheme.blocks import Blocks
from tightship.planner.scheme.colour import colour
from tightship.planner.scheme.imperative import Imperative, run_imperatively
from tightship.planner.scheme.reference_count import search_match_range, walk

__all__ = [
    "Blocks",
    "Imperative",
    "colour",
    "run_imperatively",
    "search_match_range",
    "walk",
]
