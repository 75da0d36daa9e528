"""Memory and time of training steps: reordered, with values computed again, and squeezed.

    python -m benchmarks.bench_training [SUITE ...] [--record]

Conventions. A step is the forward pass of a network of `tests.zoo`, as today's exporter writes it,
its loss (a mean cross entropy of scores; a squared error where a BERT ends in its encoder), the
explicit backward path, and one update by SGD for each weight. Bytes are those of tensors in an
arena with offsets that are multiples of 64; weights and inputs lie outside it, gradients of weights
in it. The base is the largest load of the step as it is written, updates last, each value freed
after its last use and nothing written in place. Operations are counted as
`tightship.cost.operations` has them; what the base performs is the whole, and what joins tiles
counts as added. `least_percent` is what `recompute_bound` proves: no way to run the step's
operators, in the tiles that were chosen, within the budget adds less. Blocks by hand are the base
that frameworks offer: of the forward pass what goes from block to block is kept, and blocks run
again as a whole; order and in-place are ours. Seconds of `recompute` are of the processor, on one
thread; peaks and operations are the same anywhere.

`note`, `parallel`, `dynamic` and `workers` are `note_table`, `parallel_plans`, `dynamic_shapes` and
`bench_workers` of this folder. `step`, `training_steps` beside torch, runs if it is named: it takes
three minutes of a quiet machine, and torch in this environment or in that of `--torch-python`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from benchmarks import bench_workers, dynamic_shapes, note_table, parallel_plans, training_steps
from benchmarks.hollow import Hollow, graph_of
from benchmarks.record import append
from tests.zoo.attention import Heads
from tests.zoo.bert import bert_in
from tests.zoo.gpt2 import GPT2, Size, gpt2_in
from tests.zoo.transformer import encoder_in

from tightship.cost.schedule import schedule_of
from tightship.cost.squeeze import SqueezedGraph, eager_bytes_of, least_added, priced, squeezed
from tightship.cost.training import updating_graph
from tightship.graph import DType, Graph, Inline, Node, Value
from tightship.graph.backward import Sgd, with_cross_entropy
from tightship.planner import Schedule
from tightship.planner.recompute import NEVER
from tightship.planner.rematerialized import rematerialized
from tightship.planner.reorder import reorder

XL = Size(48, Heads(25, 64), 50257, 1024)
BERT = Size(12, Heads(12, 64), 30522, 512)
ASKED = 18
"""Factor by which GPT-2-XL was to take less than its base, at half of the cost that blocks add."""

Row = dict[str, object]


def bert(batch: int, steps: int) -> Graph:
    """A training step of BERT-base with the head that it is trained with."""
    return scored(graph_of(bert_in(Hollow(20), batch, steps, BERT).model), batch * steps)


def encoder(batch: int, steps: int) -> Graph:
    """A training step of BERT-base's encoder, with 100 words and attention in few operators."""
    net = encoder_in(Hollow(20), 12, (768, 12), (batch, steps), decomposed=False)
    return updating_graph(graph_of(net.model), Sgd())


def gpt2(batch: int, steps: int, size: Size = GPT2) -> Graph:
    """A training step of GPT-2; the matrix of its scores is its own."""
    return scored(graph_of(gpt2_in(Hollow(20), batch, steps, size).model), batch * steps)


def scored(graph: Graph, count: int) -> Graph:
    """A training step of a model whose output are scores of words at `count` places."""
    (scores,) = graph.outputs
    rows = Value("rows", DType.FLOAT32, (count, graph.value(scores).static_shape[-1]))
    shape = Inline(np.array(rows.shape, np.int64))
    flat = Node("rows", "Reshape", (scores, "rows.shape"), ("rows",), {}, "", 20)
    graph = replace(
        graph,
        outputs=("rows",),
        nodes=(*graph.nodes, flat),
        values={**graph.values, "rows": rows},
        constants={**graph.constants, "rows.shape": shape},
    )
    return updating_graph(with_cross_entropy(graph, "rows"), Sgd())


def reordered() -> Iterator[Row]:
    """Small batches, updates last: what an order gives that consumes gradients at once."""
    steps = {
        "BERT-base's encoder, 1 of 128": encoder(1, 128),
        "GPT-2 small, 1 of 128": gpt2(1, 128),
        "GPT-2-XL, 1 of 128": gpt2(1, 128, XL),
    }
    for name, graph in steps.items():
        schedule = schedule_of(graph).schedule
        started = time.perf_counter()
        found = reorder(schedule)
        yield {
            "model": name,
            "steps": len(schedule.steps),
            "given_mb": megabytes(found.given_peak_bytes),
            "reordered_mb": megabytes(found.plan.plan.peak_bytes),
            "seconds": round(time.perf_counter() - started, 2),
        }


def recomputed() -> Iterator[Row]:
    """Shares of the base's peak, and the operations that each adds, and must add."""
    steps = {
        "BERT-base, 8 of 512": bert(8, 512),
        "GPT-2 small, 8 of 1,024": gpt2(8, 1024),
        "BERT-base's encoder, 16 of 512": encoder(16, 512),
    }
    for name, graph in steps.items():
        yield {"model": f"{name}, blocks by hand", **by_blocks(graph)}
        for share, asked in ((50, 0.5), (30, 5.0), (20, 15.0)):
            started = time.process_time()
            found = squeezed(graph, f"{share}%")
            seconds = time.process_time() - started
            yield {
                "model": name,
                "budget_percent": share,
                **figures(found),
                "asked_percent": asked,
                "least_percent": least_percent(found, found.eager_bytes * share // 100),
                "seconds": round(seconds, 2),
            }


def joint() -> Iterator[Row]:
    """GPT-2-XL with half of the operations that blocks by hand add, as asked, and with any."""
    graph = gpt2(1, 1024, XL)
    blocks = by_blocks(graph)
    yield {"model": "GPT-2-XL, 1 of 1,024, blocks by hand", **blocks}
    least = squeezed(graph)
    half = int(blocks["added_percent"] * least.squeezed.operations / 200)
    found = {
        "half of those operations": squeezed(graph, operations_max=half),
        f"{ASKED} times less": squeezed(graph, str(least.eager_bytes // ASKED)),
        "as little as was found": least,
    }
    for name, each in found.items():
        peak = each.squeezed.plan.plan.peak_bytes
        row = {**figures(each), "least_percent": least_percent(each, peak)}
        yield {"model": f"GPT-2-XL, 1 of 1,024, {name}", **row}


def by_blocks(graph: Graph) -> dict[str, float]:
    """Values between blocks kept, blocks run again as a whole before their way back."""
    schedule, costs = priced(graph)
    ends = block_ends(schedule)
    inside = range(ends[0] + 1, ends[-1])
    again = [i for i in inside if i not in ends and costs[i] != NEVER]
    made, _ = rematerialized(schedule, ends[-1], again)
    peak = reorder(made).plan.plan.peak_bytes
    added = sum(costs[i] for i in range(ends[0] + 1, ends[-1] + 1) if costs[i] != NEVER)
    operations = sum(cost for cost in costs if cost != NEVER)
    return row_of(eager_bytes_of(schedule), peak, added / operations)


def block_ends(schedule: Schedule) -> list[int]:
    """Steps that write what goes into the first block, from block to block, and out of the last.

    A block has two layer normalizations, before its layers or behind them.
    """
    writer = {value: i for i, step in enumerate(schedule.steps) for value in step.writes}
    norms = [i for i, step in enumerate(schedule.steps) if step.operator == "LayerNormalization"]
    first = schedule.steps[norms[0]].reads[0]
    is_before = any(first in step.reads and step.operator == "Add" for step in schedule.steps)
    blocks = (len(norms) - 1) // 2
    ends = norms[: 2 * blocks + 1 : 2]
    return [writer[schedule.steps[i].reads[0]] for i in ends] if is_before else ends


def least_percent(found: SqueezedGraph, budget_bytes: int) -> float:
    """Percentage of operations that any way to run the graph within a budget adds, at least."""
    return round(100 * least_added(found.once, budget_bytes) / found.squeezed.operations, 2)


def figures(found: SqueezedGraph) -> dict[str, float]:
    """Return the memory that a squeezed graph takes and the work it adds."""
    peak = found.squeezed.plan.plan.peak_bytes
    share = found.squeezed.added_operations / found.squeezed.operations
    return row_of(found.eager_bytes, peak, share)


def row_of(base: int, peak: int, added: float) -> dict[str, float]:
    """A peak beside the base, and the share of operations that it adds."""
    return {
        "base_mb": megabytes(base),
        "peak_mb": megabytes(peak),
        "peak_percent": round(100 * peak / base, 1),
        "times_less": round(base / peak, 2),
        "added_percent": round(100 * added, 2),
    }


def megabytes(size_bytes: int) -> float:
    """Millions of bytes."""
    return round(size_bytes / 1e6, 1)


SUITES: Mapping[str, Callable[[], Iterator[Row]]] = {
    "reorder": reordered,
    "recompute": recomputed,
    "squeeze": joint,
    "note": note_table.rows,
    "parallel": parallel_plans.rows,
    "dynamic": dynamic_shapes.rows,
    "workers": bench_workers.rows,
    "step": training_steps.steps,
}


def main(arguments: Sequence[str]) -> None:
    """Run suites, print their rows, and record them where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_training")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--torch-python", default=sys.executable, metavar="PYTHON")
    options = parser.parse_args(arguments)
    suites = {**SUITES, "step": partial(training_steps.steps, options.torch_python)}
    for name in options.suites or [name for name in SUITES if name != "step"]:
        rows = []
        for row in suites[name]():
            rows.append(row)
            sys.stdout.write(f"{name}: {', '.join(f'{k} {v}' for k, v in row.items())}\n")
            sys.stdout.flush()
        if options.record:
            append("bench_training", {"suite": name, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
