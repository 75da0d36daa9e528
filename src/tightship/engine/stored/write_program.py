"""Writes a program and its plan as JSON values, which `read_program` reads."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import (
    Body,
    ControlWork,
    KernelWork,
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    Space,
    Work,
)
from tightship.engine.stored.concurrency import concurrency_json
from tightship.engine.stored.recipes import RecipeWriter
from tightship.errors import InputError
from tightship.graph import size_bytes
from tightship.planner import Alias, SchedulePlan

if TYPE_CHECKING:
    from tightship.engine.kernels.kernel_context import KernelContext


def program_json(
    placement: Placement,
    weights: list[int],
    recipes: RecipeWriter,
    amounts: tuple[Mapping[str, int], int],
) -> dict[str, object]:
    """Describe a placed program.

    Args:
        placement: Program and its offsets.
        weights: Index among the file's weights of each packed weight.
        recipes: Recipes to add to.
        amounts: Arena bytes by planning strategy, and bytes of the runtime.

    Raises:
        InputError: A step cannot be stored; names it.
    """
    lowered = placement.lowered
    operands = _Operands(recipes)
    if lowered.objects:
        raise _refusal(next(iter(lowered.objects)), "holds strings")
    steps = [_step(step, operands, recipes) for step in lowered.steps]
    return {
        "inputs": [[n, operands.place(o, is_plain=True)] for n, o in lowered.inputs.items()],
        "outputs": [[n, operands.place(o, is_plain=True)] for n, o in lowered.outputs.items()],
        "layouts": lowered.layouts,
        "slots": _slots(lowered),
        "operands": operands.rows,
        "steps": steps,
        "weights": weights,
        "plan": _plan(placement.schedule_plan),
        "strategies": dict(amounts[0]),
        "runtime_bytes": amounts[1],
        "concurrency": concurrency_json(placement.concurrency),
    }


def _slots(lowered: Lowered) -> list[object]:
    return [[slot.name, slot.size_bytes, slot.external] for slot in lowered.slots]


class _Operands:
    """Table of distinct operands."""

    def __init__(self, recipes: RecipeWriter) -> None:
        self.rows: list[list[object]] = []
        self._recipes = recipes
        self._places: dict[tuple[object, ...], int] = {}

    def place(self, operand: Operand, *, is_plain: bool = False) -> int:
        """Return the index of an operand; `is_plain` drops the layout of a dense one."""
        if operand.space is Space.OBJECT:
            raise _refusal(operand.name, "has a shape that only the run knows")
        desc = None if is_plain and _is_dense(operand) else operand.desc
        row = (
            operand.name, operand.space.value, operand.slot, operand.dtype.value,
            operand.shape, self._recipes.layout(desc), operand.offset_bytes,
        )  # fmt: skip
        if row not in self._places:
            self._places[row] = len(self.rows)
            self.rows.append([*row[:4], list(operand.shape), *row[5:]])
        return self._places[row]


def _is_dense(operand: Operand) -> bool:
    """Whether its bytes are those of its elements and begin with the first."""
    desc, size = operand.desc, size_bytes(operand.dtype, operand.shape)
    return desc is None or (desc.offset_bytes, desc.size_bytes, desc.end_bytes) == (0, size, size)


def _refusal(name: str, reason: str) -> InputError:
    return InputError(
        f"`{name}` {reason}; a prepared model cannot hold that. Load the ONNX file instead."
    )


def _step(step: LoweredStep, operands: _Operands, recipes: RecipeWriter) -> list[object]:
    work = _work(step, step.work, operands, recipes)  # first, as layouts may refer to its primitive
    is_plain = not isinstance(step.work, PrimitiveWork)
    return [
        step.name,
        step.operator,
        step.kernel,
        step.implementation,
        [operands.place(operand, is_plain=is_plain) for operand in step.reads],
        [operands.place(operand, is_plain=is_plain) for operand in step.writes],
        work,
        step.scratch_bytes,
        [[sharing.output, sharing.input, sharing.kind.value] for sharing in step.sharing],
    ]


def _work(
    step: LoweredStep, work: Work, operands: _Operands, recipes: RecipeWriter
) -> list[object]:
    if isinstance(work, PrimitiveWork):
        place = recipes.primitive(work.desc)
        arguments = [[number, operands.place(operand)] for number, operand in work.arguments]
        return ["primitive", place, arguments]
    if isinstance(work, NativeWork):
        places = [operands.place(operand, is_plain=True) for operand in work.operands]
        return ["kernel", recipes.kernel(work.kernel, step.implementation), places]
    if isinstance(work, ControlWork):
        bodies = [_body(body, recipes) for body in work.bodies]
        rows = [_places(operands, work.outputs), _places(operands, work.inputs)]
        return ["control", [bodies, list(work.iterations.row())], rows]
    if isinstance(work, KernelWork) and work.kernel.context is not None:
        for operand in (*step.reads, *step.writes):
            if not _is_dense(operand):
                raise _refusal(operand.name, f"has no array for {step.implementation}")
        rows = [_places(operands, work.inputs), _places(operands, work.outputs)]
        return ["numpy", _made_of(step, work.kernel.context), rows]
    raise _refusal(step.name, f"({step.operator}) allocates its results when it runs")


def _body(body: Body, recipes: RecipeWriter) -> dict[str, object]:
    """Describe a body, whose operands are in its own table."""
    operands = _Operands(recipes)
    steps = [_step(step, operands, recipes) for step in body.lowered.steps]
    return {
        "slots": _slots(body.lowered),
        "operands": operands.rows,
        "steps": steps,
        "plan": _plan(body.plan),
        "bound": [list(pair) for pair in body.bound],
    }


def _places(operands: _Operands, used: Sequence[Operand | None]) -> list[int]:
    """Look up the indices of operands; -1 for one that is left out."""
    return [-1 if operand is None else operands.place(operand, is_plain=True) for operand in used]


def _made_of(step: LoweredStep, context: "KernelContext") -> list[object]:
    from tightship.engine.stored.numpy_kernel import UnstorableError, kernel_json

    try:
        return kernel_json(context)
    except UnstorableError as error:
        raise _refusal(step.name, f"({step.operator}) {error}") from None


def _plan(schedule_plan: SchedulePlan) -> dict[str, object]:
    buffers, plan = schedule_plan.buffers, schedule_plan.plan
    problem = plan.problem
    return {
        "size": problem.size_bytes.tolist(),
        "start": problem.start_step.tolist(),
        "stop": problem.stop_step.tolist(),
        "alignment": problem.alignment.tolist(),
        "names": [problem.label(index) for index in range(problem.count)]
        if problem.names is None
        else list(problem.names),
        "offset": plan.offset_bytes.tolist(),
        "strategy": plan.strategy,
        "lower_bound": plan.lower_bound_bytes,
        "status": plan.status,
        "of_value": list(buffers.of_value),
        "of_scratch": list(buffers.of_scratch),
        "in_place": [_alias(alias) for alias in buffers.in_place],
        "parts": [_alias(alias) for alias in buffers.parts],
        "inside": [[value, start] for value, start in buffers.inside.items()],
    }


def _alias(alias: Alias) -> list[object]:
    return [alias.output, alias.input, alias.kind.value, alias.offset_bytes]
