"""Implements `tightship cost`: a model's memory in graph bytes, by technique."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.cli.drawing import draw
from tightship.cli.graph_drawing import check_graph, draw_graph, graph_json
from tightship.cli.output import show, show_json
from tightship.cost import (
    ModelCost,
    arena_and_rest_bytes,
    cost_of,
    largest_batch,
    training_bytes,
    with_batch,
)
from tightship.cost.frontier import (
    Frontier,
    frontier_json,
    frontier_of,
    frontier_picture,
    frontier_report,
)
from tightship.cost.halves import in_precision
from tightship.cost.parallel import parallel_json, parallel_report, parallel_rows
from tightship.cost.picture import picture_of
from tightship.cost.report import report, to_json
from tightship.cost.squeeze import GraphSqueezing, least_added, squeeze_json, squeeze_report
from tightship.cost.training import updating_graph
from tightship.errors import InputError
from tightship.graph import Graph, Shape
from tightship.graph.backward import Sgd
from tightship.graph.batch_axis import FixedBatchError
from tightship.loading.input_shapes import input_shapes
from tightship.loading.opening import OpenedModel, open_model, with_open_batch
from tightship.quantity import format_bytes
from tightship.view.frontier_page import frontier_page
from tightship.view.frontier_svg import frontier_svg

Shapes = Mapping[str, tuple[int, ...]]

EXIT_CODES = {"feasible": 0, "infeasible": 1, "budget": 3}
"""Exit code by the status of a squeezed step."""


def run(options: argparse.Namespace) -> int:
    """Print the memory of a model, and draw it if asked to."""
    output = None if options.output is None else Path(options.output)
    check_graph(output, options.step, is_graph=options.graph)
    source = open_model(options.file)
    shapes: Shapes = input_shapes(source.declared, dict(options.shape))
    limit: int | None = options.max_memory
    batched = source
    if (options.batch or limit) and _is_fixed(source.declared):
        batched = _with_open_batch(source, shapes, is_asked=options.batch is not None)
    if options.batch is not None:
        source, shapes = batched, with_batch(batched.declared, shapes, options.batch)
    elif limit is not None and not shapes and not _is_fixed(source.declared):
        shapes = with_batch(source.declared, shapes, 1)
    name, donate = Path(options.file).name, options.donate_inputs
    graph, forward_only = source.graph(shapes), options.forward_only
    precision = _precision(options)
    cost = cost_of(
        graph, name, donate_inputs=donate, forward_only=forward_only, precision=precision
    )
    if options.training and cost.trained is None:
        why = cost.refusal or "leave out `--forward-only`"
        raise InputError(f"`{name}` has no training step to show: {why}")

    batches: dict[str, int | None] = {}
    if limit is not None:
        batches = _batches(batched, shapes, limit, cost, donate_inputs=donate)
    more, text, code, frontiers = _asked(options, cost, graph)
    if output is not None:
        _draw(options, cost, frontiers, output)
    if options.json:
        values = to_json(cost)
        values |= batches | more
        if options.graph:
            drawn = picture_of(cost, training=options.training)
            values["graph"] = graph_json(drawn, options.step)
        show_json(values)
    else:
        show(report(cost) + text)
        if limit is not None:
            show(_verdict(cost, limit, batches))
    taken = cost.trained_bytes if options.training else cost.total_bytes
    return code if limit is None or (taken or 0) <= limit else 1


def _precision(options: argparse.Namespace) -> str:
    precision: str | None = options.precision
    if precision is not None and options.forward_only:
        raise InputError(
            f"`--precision {precision}` is for the training step; leave out `--forward-only`."
        )
    return precision or "float32"


def _with_open_batch(source: OpenedModel, shapes: Shapes, *, is_asked: bool) -> OpenedModel:
    """Open the batch that a file fixes; leave the file as it is if a node refuses, unless asked."""
    try:
        return with_open_batch(source, shapes)
    except FixedBatchError as error:
        if is_asked:
            raise FixedBatchError(
                f"The batch is fixed in the file and cannot be changed: {error} Export the model "
                "with an open batch."
            ) from None
        return source


def _draw(
    options: argparse.Namespace, cost: ModelCost, frontiers: Sequence[Frontier], output: Path
) -> None:
    """Draw the network if asked to, else the first frontier, or the arena if there is none."""
    if options.graph:
        draw_graph(picture_of(cost, training=options.training), output, options.step)
        return
    if not frontiers:
        draw(picture_of(cost, training=options.training), output)
        return
    picture = frontier_picture(frontiers[0], cost.model)
    write_text(output, (frontier_page if output.suffix == ".html" else frontier_svg)(picture))


def _batches(
    source: OpenedModel, shapes: Shapes, limit: int, cost: ModelCost, *, donate_inputs: bool
) -> dict[str, int | None]:
    """Return the largest batches within a limit, of inference and of a training step."""
    ways: dict[str, Callable[..., int]] = {"largest_batch": arena_and_rest_bytes}
    if cost.trained is not None:
        ways["largest_training_batch"] = partial(training_bytes, precision=cost.precision)

    def largest(bytes_of: Callable[..., int]) -> int | None:
        return _largest(
            source.declared,
            shapes,
            limit,
            lambda each: bytes_of(source.graph(each), donate_inputs=donate_inputs),
        )

    return {name: largest(bytes_of) for name, bytes_of in ways.items()}


def _asked(
    options: argparse.Namespace, cost: ModelCost, graph: Graph
) -> tuple[dict[str, object], str, int, list[Frontier]]:
    """Return the optional parts of the report, as JSON values and as text, and the exit code."""
    values: dict[str, object] = {}
    text, code = "", 0
    if options.parallel:
        rows = parallel_rows(cost)
        values["parallel"] = parallel_json(rows)
        text += parallel_report(rows)
    budget: str | None = options.squeeze
    if budget is None and not options.frontier:
        return values, text, code, []
    step = None
    if not (options.frontier and options.forward_only):
        step = GraphSqueezing(in_precision(updating_graph(graph, Sgd()), cost.precision))
    if budget is not None and step is not None:
        found = step.within(budget)
        least = least_added(found.once, found.squeezed.plan.plan.peak_bytes)
        values["squeeze"] = squeeze_json(found, least)
        text += squeeze_report(found, least)
        code = EXIT_CODES[found.status]
    frontiers = []
    if options.frontier:
        if step is not None:
            frontiers.append(frontier_of(step, "training", budget or ""))
        asked = budget or "" if step is None else ""
        frontiers.append(frontier_of(GraphSqueezing(graph), "inference", asked))
        values["frontier"] = list(map(frontier_json, frontiers))
        text += "".join(map(frontier_report, frontiers))
        if frontiers[0].chosen is not None:
            code = EXIT_CODES[frontiers[0].chosen.status]
    return values, text, code, frontiers


def _largest(
    declared: Mapping[str, Shape | None],
    shapes: Shapes,
    limit: int,
    bytes_of: Callable[[Shapes], int],
) -> int | None:
    """Return the largest batch within a limit; None if the file fixes the batch."""
    if _is_fixed(declared):
        return None
    return largest_batch(lambda batch: bytes_of(with_batch(declared, shapes, batch)), limit)


def _is_fixed(declared: Mapping[str, Shape | None]) -> bool:
    """Whether no input has a symbolic first dimension."""
    return all(shape is None or isinstance((*shape, 1)[0], int) for shape in declared.values())


def _verdict(cost: ModelCost, limit: int, batches: Mapping[str, int | None]) -> str:
    inference = batches["largest_batch"]
    lines = ["", _line("arena, inputs and weights", cost.total_bytes, limit, inference)]
    if cost.trained_bytes is not None:
        what = "a training step, with gradients of weights"
        batch = batches["largest_training_batch"]
        lines.append(_line(what, cost.trained_bytes, limit, batch))
    return "\n".join(lines) + "\n"


def _line(what: str, size_bytes: int, limit: int, batch: int | None) -> str:
    fits = "fits" if size_bytes <= limit else "does not fit"
    largest = "its batch is fixed in the file" if batch is None else f"largest batch: {batch:,}"
    return f"{format_bytes(size_bytes)} of {what}: {fits} {format_bytes(limit)}; {largest}"
