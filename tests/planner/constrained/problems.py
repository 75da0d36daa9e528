"""Problems with constraints, valid by construction, and what they mean cell by cell."""

import numpy as np
from hypothesis import strategies as st

from tests.planner.problems import problem
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.problem import Problem


def column(*values):
    """A column of int64."""
    return np.array(values, np.int64)


ALL = "gaps windows groups forbidden banks capacities"


@st.composite
def constrained_problems(draw, count_max: int = 7, parts: str = "gaps groups forbidden banks"):
    """Problems with some of the constraints named in `parts`, see `ALL`, and `pins`."""
    count = draw(st.integers(1, count_max))
    rows = [
        (draw(st.integers(0, 6)), (start := draw(st.integers(0, 6))),
         start + draw(st.integers(1, 6)), draw(st.sampled_from([1, 2, 4])))
        for _ in range(count)
    ]  # fmt: skip
    drawn = [_gap(draw, index, row) for index, row in enumerate(rows) if row[2] - row[1] > 2]
    gaps = [gap for gap in drawn if gap] if "gaps" in parts else []
    windows = [sorted(draw(st.integers(0, rows[gap[0]][0])) for _ in "ab") for gap in gaps]
    groups = _groups(draw, rows) if "groups" in parts else {}
    banks = draw(st.integers(0, 2)) if "banks" in parts else 0
    allowed = [[True] + [draw(st.booleans()) for _ in range(banks - 1)] for _ in rows]
    limits = [draw(st.integers(0, 10)) if "capacities" in parts else None for _ in range(banks)]
    pins = [draw(st.integers(-4, 2)) * row[3] for row in rows] if "pins" in parts else []
    forbidden = draw(st.lists(_forbidden(banks), max_size=2)) if "forbidden" in parts else ()
    constraints = Constraints(
        np.array([max(pin, FREE) for pin in pins]) if pins and not groups else None,
        np.array(gaps, np.int64).reshape(-1, 3) if "gaps" in parts else None,
        tuple(forbidden),
        tuple(Bank(f"b{index}", limits[index], index) for index in range(banks)),
        np.array(allowed) if banks else None,
        **groups,
        gap_window_bytes=np.array(windows, np.int64).reshape(-1, 2) if "windows" in parts else None,
    )
    return problem(*rows, constraints=constraints)


def _gap(draw, index, row):
    start = draw(st.integers(row[1] + 1, row[2] - 2))
    stop = draw(st.integers(start + 1, row[2] - 1))
    return draw(st.sampled_from([None, (index, start, stop)]))


def _groups(draw, rows):
    group = [draw(st.sampled_from([FREE, FREE, 0, 1])) for _ in rows]
    offset = [draw(st.integers(0, 3)) * 4 for _ in rows]
    return {"group": column(*group), "group_offset_bytes": column(*offset)}


def _forbidden(banks):
    numbers = (st.integers(0, 8), st.integers(1, 4), st.integers(0, 6), st.integers(1, 4))
    return st.tuples(*numbers, st.integers(0, max(0, banks - 1))).map(
        lambda drawn: ForbiddenRange(
            drawn[0], drawn[0] + drawn[1], drawn[2], drawn[2] + drawn[3], drawn[4]
        )
    )


def cells(made: Problem, offsets, banks=None) -> dict[int, set[tuple[int, int, int]]]:
    """The bank, byte and step of everything that each buffer has."""
    constraints = made.constraints or Constraints()
    gaps = [] if constraints.gaps is None else constraints.gaps.tolist()
    kept = np.zeros((len(gaps), 2), int)
    kept = kept if constraints.gap_window_bytes is None else constraints.gap_window_bytes
    found = {}
    for buffer in range(made.count):
        asleep = {s for index, start, stop in gaps if index == buffer for s in range(start, stop)}
        steps = set(range(int(made.start_step[buffer]), int(made.stop_step[buffer]))) - asleep
        spot = range(int(offsets[buffer]), int(offsets[buffer] + made.size_bytes[buffer]))
        bank = 0 if banks is None else int(banks[buffer])
        found[buffer] = {(bank, byte, step) for byte in spot for step in steps}
        for (index, start, stop), (bottom, top) in zip(gaps, kept, strict=True):
            if index == buffer:
                part = spot[int(bottom) : int(top)]
                found[buffer] |= {(bank, byte, s) for byte in part for s in range(start, stop)}
    return found


def is_valid(made: Problem, offsets, banks=None) -> bool:
    """Whether a plan honours everything, by looking at every cell."""
    constraints = made.constraints or Constraints()
    found = cells(made, offsets, banks)
    group = constraints.group if constraints.group is not None else column(*[FREE] * made.count)
    apart = constraints.group_offset_bytes
    taken = {
        (place.bank, byte, step)
        for place in constraints.forbidden
        for byte in range(place.start_byte, place.stop_byte)
        for step in range(place.start_step, min(place.stop_step, 40))
    }
    for one in range(made.count):
        if offsets[one] < 0 or offsets[one] % made.alignment[one] or found[one] & taken:
            return False
        if banks is not None and not constraints.allowed_banks[one, banks[one]]:
            return False
        for other in range(one):
            if group[one] == FREE or group[one] != group[other]:
                if found[one] & found[other]:
                    return False
            elif apart[one] - apart[other] != offsets[one] - offsets[other] or (
                banks is not None and banks[one] != banks[other]
            ):
                return False
    return True
