"""Writes the output of `tightship cost`: the memory note's table, and the figures behind it."""

import textwrap
from collections.abc import Iterator

from tightship.cost.model_cost import ModelCost, Row
from tightship.cost.picture import picture_of
from tightship.planner.cost import Columns, Cost
from tightship.quantity import format_bytes
from tightship.view.picture import Picture
from tightship.view.report import peak
from tightship.view.table import WIDTH_MAX, Column, table
from tightship.view.text import printable, shorten

TITLES = {
    "naive_bytes": "naive",
    "in_place_bytes": "in-place",
    "shared_bytes": "shared",
    "both_bytes": "both",
    "arena_bytes": "arena",
    "lower_bound_bytes": "bound",
    "lower_bound_in_place_bytes": "with in-place",
}
"""Columns of the table, by attribute of `Columns`."""

LIVE_SHOWN = 10
_INDENT = 2


def report(cost: ModelCost) -> str:
    """Describe the memory of a model in at most 100 columns."""
    blocks = [
        list(_headline(cost)),
        _table(cost),
        list(_claims(cost)),
        _levers(cost.cost, "" if cost.trained is None else ", inference"),
        _schemes(cost.cost),
        peak(picture_of(cost), LIVE_SHOWN),
    ]
    if cost.trained is not None:
        blocks += [
            _levers(cost.trained, ", training"),
            _schemes(cost.trained),
            [
                "In training:",
                *peak(picture_of(cost, training=True), LIVE_SHOWN),
            ],
        ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(cost: ModelCost) -> Iterator[str]:
    arena = format_bytes(cost.cost.columns.arena_bytes)
    yield shorten(f"{arena} arena of {printable(cost.model)}, in graph bytes", WIDTH_MAX)
    yield "tensors are as large as their elements; `plan` shows the memory of the lowered program"
    yield (
        f"besides: weights {format_bytes(cost.graph.weight_bytes)}, inputs "
        f"{format_bytes(cost.graph.input_bytes)}; in all {format_bytes(cost.total_bytes)}"
    )
    if unsized := cost.graph.unsized:
        names = ", ".join(f"`{printable(name)}`" for name in unsized[:3])
        more = f" and {len(unsized) - 3} more" if len(unsized) > 3 else ""
        yield shorten(f"not counted, as their sizes depend on data: {names}{more}", WIDTH_MAX)


def _table(cost: ModelCost) -> list[str]:
    rows = [_row(row) for row in cost.rows]
    if cost.refusal:
        rows.append(["training", *("·" for _ in TITLES)])
    columns = [Column(""), *(Column(title, number=True) for title in TITLES.values())]
    lines = table(columns, rows, indent=_INDENT)
    lines.append(
        f"{'':{_INDENT}}bound: the largest live bytes, which every plan needs; then with in-place"
    )
    if cost.refusal:
        indent = " " * _INDENT
        reason = printable(f"training: {cost.refusal}")
        lines += textwrap.wrap(reason, WIDTH_MAX, initial_indent=indent, subsequent_indent=indent)
    elif any(row.pass_name == "training" for row in cost.rows):
        lines.append(
            f"{'':{_INDENT}}training: with losses; gradients of weights are outside the arena"
        )
        if cost.precision != "float32":
            lines.append(
                f"{'':{_INDENT}}training: values wait for late readers in {cost.precision}"
            )
    return lines


def _row(row: Row) -> list[str]:
    sizes = [format_bytes(getattr(row.columns, attribute)) for attribute in TITLES]
    return [f"{row.pass_name}, {row.granularity}", *sizes]


def _claims(cost: ModelCost) -> Iterator[str]:
    """Compare the memory note's claims with the figures of this model."""
    yield "The memory note claims that both together leave about half, and less for finer graphs:"
    for row in cost.rows:
        columns = row.columns
        yield (
            f"{'':{_INDENT}}{row.pass_name}, {row.step_count:,} {row.granularity}: both / naive "
            f"{_share(columns.both_bytes, columns)}, arena / naive "
            f"{_share(columns.arena_bytes, columns)}, arena / bound {_ratio(columns)}"
        )


def _share(size_bytes: int, columns: Columns) -> str:
    return f"{size_bytes / columns.naive_bytes:.1%}" if columns.naive_bytes else "·"


def _ratio(columns: Columns) -> str:
    bound = columns.lower_bound_in_place_bytes
    return f"{columns.arena_bytes / bound:.3f}" if bound else "·"


def _levers(cost: Cost, pass_name: str) -> list[str]:
    naive, arena = cost.columns.naive_bytes, cost.columns.arena_bytes
    rows = [
        [
            lever.name,
            format_bytes(lever.alone_bytes),
            format_bytes(max(0, naive - lever.alone_bytes)),
            format_bytes(lever.without_bytes),
            format_bytes(max(0, lever.without_bytes - arena)),
        ]
        for lever in cost.levers
    ]
    columns = [
        Column(f"idea{pass_name}"),
        Column("alone", number=True),
        Column("saves", number=True),
        Column("all but it", number=True),
        Column("it saves last", number=True),
    ]
    return table(columns, rows, indent=_INDENT)


def _schemes(cost: Cost) -> list[str]:
    run, held = cost.imperative, cost.held
    rows = [[name, format_bytes(size), ""] for name, size in cost.schemes.items()]
    rows.append(
        ["run by a framework", format_bytes(run.reserved_bytes),
         f"{format_bytes(run.peak_live_bytes)} live, {run.allocate_calls:,} allocations, "
         f"{run.system_calls:,} by the system"]
    )  # fmt: skip
    rows.append(
        ["with references held", format_bytes(held.reserved_bytes),
         f"a list of all values frees none of {held.allocate_calls:,}"]
    )  # fmt: skip
    columns = [Column("other ways"), Column("bytes", number=True), Column("")]
    return table(columns, rows, indent=_INDENT)


def to_json(cost: ModelCost) -> dict[str, object]:
    """Return the memory of a model as JSON values; amounts are integers named `*_bytes`.

    If a gradient is unknown, `training` is null and `training_refusal` gives the reason. Both are
    absent if only the forward pass was requested.
    """
    passes = dict.fromkeys(row.pass_name for row in cost.rows)
    rows = {
        name: [
            {
                "granularity": row.granularity,
                "step_count": row.step_count,
                **{attribute: getattr(row.columns, attribute) for attribute in TITLES},
            }
            for row in cost.rows
            if row.pass_name == name
        ]
        or None
        for name in (*passes, *(["training"] if cost.refusal else []))
    }
    return {
        "model": cost.model,
        "bytes": "graph",
        "weights_bytes": cost.graph.weight_bytes,
        "inputs_bytes": cost.graph.input_bytes,
        "total_bytes": cost.total_bytes,
        "unsized": list(cost.graph.unsized),
        **rows,
        **({"training_refusal": cost.refusal} if cost.refusal else {}),
        **({} if cost.trained is None else {"training_precision": cost.precision}),
        **_detail(cost.cost, picture_of(cost)),
        **(
            {}
            if cost.trained is None
            else {
                "training_step": {
                    "total_bytes": cost.trained_bytes,
                    "beside_bytes": cost.beside_bytes,
                    **_detail(cost.trained, picture_of(cost, training=True)),
                }
            }
        ),
    }


def _detail(cost: Cost, picture: Picture) -> dict[str, object]:
    """Return the ideas, other ways and the peak of one pass."""
    step = picture.peak_step()
    return {
        "levers": [
            {"lever": lever.name, "alone_bytes": lever.alone_bytes,
             "without_bytes": lever.without_bytes}
            for lever in cost.levers
        ],
        "schemes": [{"scheme": name, "size_bytes": size} for name, size in cost.schemes.items()],
        "imperative": _run_json(cost, held=False),
        "imperative_references_held": _run_json(cost, held=True),
        "peak_step": step,
        "live_at_peak": [
            {"name": live.name, "operator": picture.operator_of(live),
             "size_bytes": live.size_bytes, "offset_bytes": live.offset_bytes,
             "start_step": live.start_step, "stop_step": live.stop_step}
            for live in picture.live_at(step)[:LIVE_SHOWN]
        ],
    }  # fmt: skip


def _run_json(cost: Cost, *, held: bool) -> dict[str, int]:
    run = cost.held if held else cost.imperative
    return {
        "peak_live_bytes": run.peak_live_bytes,
        "reserved_bytes": run.reserved_bytes,
        "allocate_calls": run.allocate_calls,
        "deallocate_calls": run.deallocate_calls,
        "system_calls": run.system_calls,
    }
