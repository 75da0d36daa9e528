"""Renders a memory plan as text, picture or file."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.engine.plan.concurrency_report import concurrency_json, concurrency_text
from tightship.engine.plan.memory_plan import MemoryPlan, PlannedStep, PlannedTensor
from tightship.engine.plan.planned_apart import PlannedApart
from tightship.errors import InputError
from tightship.planner.format import write_csv
from tightship.view.picture import Picture, Rectangle, Step, Weight
from tightship.view.report import report, to_json
from tightship.view.svg import svg
from tightship.view.timeline import timeline


def picture_of(plan: MemoryPlan) -> Picture:
    """Convert the plan to the plain data that views draw."""
    return Picture(
        title=plan.model,
        arena_bytes=plan.arena_bytes,
        lower_bound_bytes=plan.lower_bound_bytes,
        rectangles=tuple(_rectangle(tensor) for tensor in plan.tensors),
        steps=tuple(_step(step) for step in plan.steps),
        parts={
            "weights": plan.weights_bytes,
            "inputs and outputs": plan.io_bytes,
            "runtime": plan.runtime_bytes,
        },
        strategy="planned",
        strategies=plan.strategies,
        key=plan.key,
        inputs=plan.inputs,
        outputs=plan.outputs,
        weights=tuple([Weight(w.name, w.size_bytes, w.type, w.step) for w in plan.weights]),
        apart=_apart(plan.apart),
    )


def _apart(said: PlannedApart | None) -> dict[str, int]:
    if said is None:
        return {}
    return {
        "planning process": said.process_bytes,
        "both at once": said.together_bytes,
        "planned here": said.here_bytes,
    }


def table_of(plan: MemoryPlan) -> str:
    """Tabulate totals, strategies, and the peak with the tensors live at it."""
    return report(picture_of(plan)) + concurrency_text(plan.concurrency)


def svg_of(plan: MemoryPlan) -> str:
    """Draw the arena as a static picture."""
    return svg(picture_of(plan))


def json_of(plan: MemoryPlan) -> dict[str, object]:
    """Convert the plan to JSON values; amounts are integers named `*_bytes`."""
    at_once = (
        {} if plan.concurrency is None else {"concurrency": concurrency_json(plan.concurrency)}
    )
    return {**to_json(picture_of(plan)), "placed_by": plan.arena.strategy, **at_once}


def save(plan: MemoryPlan, path: Path) -> None:
    """Write a plan in the format that the suffix of `path` selects.

    Raises:
        InputError: The suffix selects no format.
    """
    check_form(path)
    WRITERS[path.suffix](plan, path)


def save_graph(plan: MemoryPlan, path: Path) -> None:
    """Write the network of a plan: a page, a still picture, or JSON.

    Raises:
        InputError: The suffix selects none of them.
    """
    from tightship.view.network.drawing import network_text, network_values  # few are drawn

    picture = picture_of(plan)
    if path.suffix == ".json":
        write_text(path, json.dumps(network_values(picture), indent=1) + "\n")
    elif path.suffix in {".html", ".svg"}:
        write_text(path, network_text(picture, path.suffix))
    else:
        raise InputError(
            f"A graph cannot be saved as `{path}`; give a name that ends in one of .html, .svg, "
            ".json."
        )


def check_form(path: Path) -> None:
    """Check that the suffix of `path` selects a format.

    Raises:
        InputError: The suffix selects no format.
    """
    if path.suffix not in WRITERS:
        raise InputError(
            f"A plan cannot be saved as `{path}`; give a name that ends in one of "
            f"{', '.join(WRITERS)}."
        )


def _rectangle(tensor: PlannedTensor) -> Rectangle:
    return Rectangle(
        name=tensor.name,
        size_bytes=tensor.size_bytes,
        offset_bytes=tensor.offset_bytes,
        start_step=tensor.start_step,
        stop_step=tensor.stop_step,
        kind=tensor.kind,
        shares_with=tensor.shares_with,
        type=tensor.type,
    )


def _step(step: PlannedStep) -> Step:
    kernel = f"{step.kernel} {step.implementation}".strip()
    return Step(step.name, step.operator, kernel, step.live_bytes, step.dynamic_reason,
                step.reads, step.writes)  # fmt: skip


WRITERS: Mapping[str, Callable[[MemoryPlan, Path], None]] = {
    ".html": lambda plan, path: write_text(path, timeline(picture_of(plan))),
    ".svg": lambda plan, path: write_text(path, svg_of(plan)),
    ".json": lambda plan, path: write_text(path, json.dumps(json_of(plan), indent=1) + "\n"),
    ".csv": lambda plan, path: write_csv(path, plan.arena.problem, plan.arena.offset_bytes),
    ".txt": lambda plan, path: write_text(path, table_of(plan)),
}
"""Writers by file suffix."""
