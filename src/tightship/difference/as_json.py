"""Converts a difference of plans to JSON values."""

from tightship.difference.change import PlanDifference
from tightship.view.picture import Picture


def json_of(difference: PlanDifference) -> dict[str, object]:
    """Convert a difference; names unchanged, amounts as integers named `*_bytes`."""
    cause = difference.cause
    return {
        "old": _plan(difference.old, difference.step_old),
        "new": _plan(difference.new, difference.step_new),
        "change_bytes": difference.change_bytes,
        "cause": cause
        and {
            "kind": cause.kind,
            "name": cause.name,
            "text": cause.text,
            "change_bytes": cause.change_bytes,
        },
        "parts": [
            {"part": part, "old_bytes": old, "new_bytes": new}
            for part, (old, new) in difference.parts.items()
        ],
        "changes": [
            {
                "part": change.part,
                "kind": change.kind,
                "name": change.name,
                "operator": change.operator,
                "module": change.module,
                "old_bytes": change.old_bytes,
                "new_bytes": change.new_bytes,
                "why": change.why,
            }
            for change in difference.changes
        ],
        "by_module": _sums("module", difference.by_module()),
        "by_operator": _sums("operator", difference.by_operator()),
        "keys": [
            {"key": name, "old": old, "new": new} for name, (old, new) in difference.keys.items()
        ],
    }


def _plan(picture: Picture, step: int) -> dict[str, object]:
    return {"model": picture.title, "peak_bytes": picture.peak_bytes, "compared_step": step}


def _sums(name: str, sums: dict[str, int]) -> list[dict[str, object]]:
    return [{name: key, "change_bytes": size} for key, size in sums.items()]
