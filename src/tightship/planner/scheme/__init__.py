"""The memory note's ways of planning, each a pure function of a schedule, to be compared."""

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
