"""Checkmate (Jain and others 2020): rematerialization as an integer program, solved by HiGHS.

The step is divided into a stage for each node; in stage t, node t runs for the first time, and any
earlier node may run again. R[t, i] says that node i runs in stage t, S[t, i] that its value is kept
from stage t - 1 to t, F[t, i, k] that value i is given up in stage t behind node k, and U[t, k] are
the bytes while node k runs. F is continuous: with whole R and S its bounds are whole.
"""

from collections import defaultdict

import numpy as np
from benchmarks.rematerialization.answer import Answer
from benchmarks.rematerialization.layers import Work
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

Key = tuple[str, int, int, int]
UNITS = 1 << 12
"""Parts of the budget that bytes are given in, so that the program's numbers are small."""


class _Program:
    """Columns by key, and rows of coefficients with an upper bound."""

    def __init__(self) -> None:
        self.columns: dict[Key, int] = {}
        self.entries: list[tuple[int, int, float]] = []
        self.limits: list[float] = []

    def column(self, name: str, stage: int, node: int, behind: int = 0) -> int:
        return self.columns.setdefault((name, stage, node, behind), len(self.columns))

    def at_most(self, limit: float, *terms: tuple[float, int]) -> None:
        row = len(self.limits)
        summed: defaultdict[int, float] = defaultdict(float)
        for factor, column in terms:
            summed[column] += factor
        self.entries += [(row, column, factor) for column, factor in summed.items()]
        self.limits.append(limit)


def checkmate(work: Work, budget_bytes: int, seconds: float) -> Answer:
    """Solve the program; the answer has the proven bound where time runs out.

    Args:
        work: The nodes.
        budget_bytes: Most live bytes.
        seconds: Time limit of the solver.
    """
    program = _Program()
    for stage in range(work.count):
        _precedence(program, work, stage)
        _memory(program, work, stage, budget_bytes)
    columns = program.columns
    cost, upper, whole = (np.zeros(len(columns)) for _ in range(3))
    lower = np.zeros(len(columns))
    unit = max(work.costs)
    for (name, stage, node, _), column in columns.items():
        upper[column] = UNITS if name == "U" else 1
        whole[column] = name in "RS"
        if name == "R":
            cost[column] = work.costs[node] / unit
            lower[column] = node == stage
    rows, places, factors = zip(*program.entries, strict=True)
    shape = len(program.limits), len(columns)
    matrix = coo_array((factors, (rows, places)), shape).tocsr()
    found = milp(
        cost,
        integrality=whole,
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(matrix, -np.inf, program.limits),
        options={"time_limit": seconds, "mip_rel_gap": 1e-4},
    )
    bound = -np.inf if found.mip_dual_bound is None else found.mip_dual_bound
    least = max(0, int(bound * unit * (1 - 1e-9)) - work.operations) if bound > 0 else 0
    if found.x is None:
        return Answer((), least)
    return Answer(_runs(work, columns, found.x), least, found.status == 0)


def _runs(work: Work, columns: dict[Key, int], x: np.ndarray) -> tuple[int, ...]:
    return tuple(
        node
        for stage in range(work.count)
        for node in range(stage + 1)
        if x[columns["R", stage, node, 0]] > 0.5
    )


def _precedence(program: _Program, work: Work, stage: int) -> None:
    """A node that runs finds what it reads; a value is kept only from where it was."""
    for node in range(stage + 1):
        run = program.column("R", stage, node)
        for read in work.reads[node]:
            kept = program.column("S", stage, read)
            program.at_most(0, (1, run), (-1, program.column("R", stage, read)), (-1, kept))
        if node < stage:
            before = (-1, program.column("R", stage - 1, node))
            terms = [(1, program.column("S", stage, node)), before]
            if node < stage - 1:
                terms.append((-1, program.column("S", stage - 1, node)))
            program.at_most(0, *terms)


def _memory(program: _Program, work: Work, stage: int, budget_bytes: int) -> None:
    """Bytes while each node of a stage runs; they are at most the budget by the bound of U."""
    readers = work.readers()
    size = [each * UNITS / budget_bytes for each in work.sizes]
    given: list[tuple[float, int]] = [
        (size[node], program.column("S", stage, node)) for node in range(stage)
    ]
    for node in range(stage + 1):
        load = program.column("U", stage, node)
        run = program.column("R", stage, node)
        program.at_most(0, *given, (size[node], run), (-1, load))
        given = [(1, load)]
        for value in (*work.reads[node], node):
            later = [each for each in readers[value] if node < each <= stage]
            free = program.column("F", stage, value, node)
            program.at_most(0, (1, free), (-1, run))
            if stage + 1 < work.count:
                program.at_most(1, (1, free), (1, program.column("S", stage + 1, value)))
            elif value == work.count - 1:
                program.at_most(0, (1, free))
            for each in later:
                program.at_most(1, (1, free), (1, program.column("R", stage, each)))
            given.append((-size[value], free))
