"""Draws the sessions of `tightship plan --context`: peaks by context and number of sessions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.loading.planned_session import SessionPlan
from tightship.loading.session_plan import SessionPlanner
from tightship.loading.stored_session_plan import StoredSessionPlanner
from tightship.view.session_page import session_page
from tightship.view.session_picture import PlannedContext, SessionPicture
from tightship.view.session_svg import session_svg

Planner = SessionPlanner | StoredSessionPlanner

BEYOND = 2
"""A largest context up to this multiple of the contexts that are given is in the picture too."""


def draw_sessions(
    path: Path,
    planner: Planner,
    plans: Sequence[SessionPlan],
    counts: Sequence[int],
    limit_bytes: int | None,
    largest: Mapping[int, int],
) -> None:
    """Write a page (.html) or a still picture of plans.

    Args:
        path: The file.
        planner: Planner that made the plans, and found the largest contexts.
        plans: Plans of the contexts that are given; none if only the largest are told.
        counts: Numbers of sessions of these plans.
        limit_bytes: Limit of memory, if there is one.
        largest: Largest context within it, by number of sessions.

    Raises:
        OSError: The file cannot be written; an older file is then untouched.
    """
    asked = frozenset(plan.context for plan in plans)
    near = {c for c in largest.values() if c and (not asked or c <= BEYOND * max(asked))}
    contexts = sorted(asked | near) or [planner.least_context]
    picture = SessionPicture(
        planner.name,
        tuple(_planned(planner.plan(context)) for context in contexts),
        tuple(sorted({*(counts if plans else ()), *largest})),
        asked,
        limit_bytes,
        largest,
    )
    write_text(path, (session_page if path.suffix == ".html" else session_svg)(picture))


def _planned(plan: SessionPlan) -> PlannedContext:
    parts = {
        "weights": plan.weights_bytes,
        "arena": plan.arena_bytes,
        "in and out": plan.io_bytes,
        "runtime": plan.runtime_bytes,
    }
    return PlannedContext(plan.context, parts, plan.state_bytes)
