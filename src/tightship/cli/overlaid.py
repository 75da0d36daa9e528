"""Lays a plan over an older one, for a page that shows both."""

from tightship.difference import compare_plans
from tightship.difference.matching import match
from tightship.view.page_extras import Overlay, placed_steps
from tightship.view.picture import Picture


def overlay_of(old: Picture, new: Picture, name: str) -> Overlay:
    """Match the buffers and steps of two plans, and list what moved the peak.

    Args:
        old: Plan before.
        new: Plan after, whose steps are the page's axis.
        name: Name of the old plan for people.
    """
    matching = match(old, new)
    found = compare_plans(old, new)
    return Overlay(
        old,
        tuple(matching.tensors.get(index, -1) for index in range(len(new.rectangles))),
        placed_steps(new.step_count, old.step_count, list(matching.steps.items())),
        tuple(
            (change.name or change.part, f"{change.kind}: {change.why}", change.old_bytes,
             change.new_bytes)
            for change in found.changes
        ),
        found.cause.text if found.cause is not None else "",
        name,
    )  # fmt: skip
