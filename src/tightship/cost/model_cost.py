"""Computes the memory of a model, operator by operator and in blocks."""

from collections.abc import Iterable
from dataclasses import dataclass

from tightship.cost.halves import in_precision
from tightship.cost.schedule import GraphSchedule, schedule_of
from tightship.cost.training import training_graph
from tightship.errors import GraphError
from tightship.graph import Graph
from tightship.planner import Schedule, place_schedule
from tightship.planner.coarse import in_blocks
from tightship.planner.cost import Columns, Cost, columns_of, cost
from tightship.public_calls import public_call


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: `pass_name` over steps of one `granularity`."""

    pass_name: str
    granularity: str
    step_count: int
    columns: Columns


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The memory of a model's tensors, in graph bytes.

    Attributes:
        model: Name of the model in reports.
        graph: The graph's schedule, and bytes outside the arena.
        cost: The memory of the graph as it is in the file, operator by operator.
        rows: Inference node by node and in blocks, then a training step in the same way.
        refusal: The reason why rows of training are missing; empty if they are not.
        step: The schedule of a training step, if there are rows of it.
        trained: The memory of that step, operator by operator.
        beside_bytes: Bytes beside that step's arena: inputs and labels, weights, their gradients.
        precision: Type that the step's values wait in, `float32` or `bfloat16`.
    """

    model: str
    graph: GraphSchedule
    cost: Cost
    rows: tuple[Row, ...]
    refusal: str = ""
    step: Schedule | None = None
    trained: Cost | None = None
    beside_bytes: int = 0
    precision: str = "float32"

    @property
    def total_bytes(self) -> int:
        """Bytes of arena, inputs and weights."""
        arena = self.cost.columns.arena_bytes
        return arena + self.graph.input_bytes + self.graph.weight_bytes

    @property
    def trained_bytes(self) -> int | None:
        """Bytes of a training step: its arena and what is beside it; None without a step."""
        if self.trained is None:
            return None
        return self.trained.columns.arena_bytes + self.beside_bytes


@public_call
def cost_of(
    graph: Graph,
    model: str,
    *,
    donate_inputs: bool = False,
    forward_only: bool = False,
    precision: str = "float32",
) -> ModelCost:
    """Compute the memory of a graph.

    Args:
        graph: A typed graph.
        model: Name of the model in reports.
        donate_inputs: Whether inputs may be written over; False by default.
        forward_only: Whether to leave out training; False by default.
        precision: Type that values of a training step wait for late readers in: `float32`, the
            default, or `bfloat16`.

    Raises:
        PlanError: The graph's values are bound in a way that no plan can satisfy.
    """
    made = schedule_of(graph, donate_inputs=donate_inputs)
    fine = cost(made.schedule)
    rows: tuple[Row, ...] = _rows("inference", made.schedule, fine.columns)
    if forward_only:
        return ModelCost(model, made, fine, rows)
    try:
        trained, gradients = training_graph(graph)
    except GraphError as error:
        return ModelCost(model, made, fine, rows, str(error))
    trained = in_precision(trained, precision, gradients)
    step = schedule_of(trained, donate_inputs=donate_inputs, held=gradients)
    whole = cost(step.schedule)
    rows = *rows, *_rows("training", step.schedule, whole.columns)
    beside = _beside_bytes(trained, gradients, step)
    return ModelCost(
        model, made, fine, rows, step=step.schedule, trained=whole, beside_bytes=beside,
        precision=precision,
    )  # fmt: skip


def _beside_bytes(graph: Graph, gradients: Iterable[str], step: GraphSchedule) -> int:
    values = [graph.value(name) for name in dict.fromkeys(gradients)]
    held = sum([value.size_bytes for value in values if value.is_static])
    return held + step.input_bytes + step.weight_bytes


def _rows(pass_name: str, schedule: Schedule, columns: Columns) -> tuple[Row, Row]:
    """Make the rows of a schedule as it is and in blocks."""
    coarse = in_blocks(schedule)
    return (
        Row(pass_name, "nodes", len(schedule.steps), columns),
        Row(pass_name, "blocks", len(coarse.steps), columns_of(coarse)),
    )


def arena_and_rest_bytes(graph: Graph, *, donate_inputs: bool = False) -> int:
    """Compute `ModelCost.total_bytes` of a graph alone, which takes less time than `cost_of`."""
    made = schedule_of(graph, donate_inputs=donate_inputs)
    arena = place_schedule(made.schedule).plan.peak_bytes
    return arena + made.input_bytes + made.weight_bytes


def training_bytes(graph: Graph, *, donate_inputs: bool = False, precision: str = "float32") -> int:
    """Compute `ModelCost.trained_bytes` of a graph alone.

    Raises:
        GraphError: As `training_graph`.
    """
    trained, gradients = training_graph(graph)
    trained = in_precision(trained, precision, gradients)
    step = schedule_of(trained, donate_inputs=donate_inputs, held=gradients)
    arena = place_schedule(step.schedule).plan.peak_bytes
    return arena + _beside_bytes(trained, gradients, step)
