"""Plans in the forms that a comparison takes, and plans that `tightship plan -o` wrote."""

import json
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from tightship.errors import FormatError
from tightship.view.picture import Picture, Rectangle, Step, Weight


class HasPicture(Protocol):
    """Plan that gives its facts as a picture, as `MemoryPlan` does."""

    def picture(self) -> Picture:
        """Return the facts of the plan."""


AnyPlan = HasPicture | Picture
"""A plan of a model, or its picture."""

_PARTS = {
    "weights": "weights_bytes",
    "inputs and outputs": "inputs_and_outputs_bytes",
    "runtime": "runtime_bytes",
}


def picture_of(plan: AnyPlan) -> Picture:
    """Return the facts of a plan."""
    return plan if isinstance(plan, Picture) else plan.picture()


def read_plan(path: str | PathLike[str]) -> Picture:
    """Read a plan that `tightship plan -o plan.json` or `MemoryPlan.save` wrote.

    Raises:
        FormatError: The file is not JSON of a plan, or the plan is not of a model.
        OSError: It cannot be read.
    """
    where = Path(path)
    try:
        return _picture(json.loads(where.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"`{where}` is not a plan of a model: {type(error).__name__} {error}; "
            "`tightship plan MODEL -o plan.json` writes one."
        ) from None


def _picture(plan: dict[str, Any]) -> Picture:
    return Picture(
        title=plan["model"],
        arena_bytes=int(plan["arena_bytes"]),
        lower_bound_bytes=int(plan["lower_bound_bytes"]),
        rectangles=tuple([_rectangle(each) for each in plan["tensors"]]),
        steps=tuple([_step(each) for each in plan["steps"]]),
        parts={name: int(plan[key]) for name, key in _PARTS.items()},
        strategy=plan["strategy"],
        strategies={each["strategy"]: each["arena_bytes"] for each in plan["strategies"]},
        key=dict(plan["key"]),
        inputs=dict(plan["inputs"]),
        outputs=dict(plan["outputs"]),
        weights=tuple([
            Weight(each["name"], int(each["size_bytes"]), each["type"], int(each["step"]))
            for each in plan.get("weights", ())
        ]),
        apart={name.removesuffix("_bytes").replace("_", " "): int(size)
               for name, size in plan.get("planned_apart", {}).items()},
    )  # fmt: skip


def _rectangle(each: dict[str, Any]) -> Rectangle:
    return Rectangle(
        name=each["name"],
        size_bytes=int(each["size_bytes"]),
        offset_bytes=int(each["offset_bytes"]),
        start_step=int(each["start_step"]),
        stop_step=int(each["stop_step"]),
        kind=each["kind"],
        shares_with=each["shares_with"],
        type=each.get("type", ""),
    )


def _step(each: dict[str, Any]) -> Step:
    return Step(
        each["name"],
        each["operator"],
        each["kernel"],
        int(each["live_bytes"]),
        each["dynamic_reason"],
        tuple(map(str, each.get("reads", ()))),
        tuple(map(str, each.get("writes", ()))),
    )
