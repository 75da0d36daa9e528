"""What training steps take: reordered, with values computed again, and squeezed.

    python -m benchmarks.bench_training [SUITE ...] [--record]

Conventions. A step is the forward pass of a network of `tests.zoo`, as today's exporter writes it,
its loss (a mean cross entropy of GPT-2's scores; a squared error of BERT's outputs), the explicit
backward path, and one update by SGD for each weight. Bytes are those of tensors in an arena with
offsets that are multiples of 64; weights and inputs lie outside it, gradients of weights in it.
The base is the largest load of the step as it is written, updates last, each value freed after its
last use and nothing written in place. Operations are counted as `tightship.cost.operations` has
them; what the base performs is the whole. Everything here but seconds is the same on any machine.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from benchmarks.hollow import Hollow, graph_of
from benchmarks.record import append
from tests.zoo.attention import Heads
from tests.zoo.gpt2 import GPT2, Size, gpt2_in
from tests.zoo.transformer import encoder_in

from tightship.cost.schedule import schedule_of
from tightship.cost.squeeze import SqueezedGraph, squeezed
from tightship.cost.training import updating_graph
from tightship.graph import DType, Graph, Inline, Node, Value
from tightship.graph.backward import Sgd, with_cross_entropy
from tightship.planner.reorder import reorder

XL = Size(48, Heads(25, 64), 50257, 1024)
HALF_OF_BLOCKS = 0.159
"""Half of the operations that checkpoints of whole blocks add to GPT-2-XL by hand."""

Row = dict[str, object]


def bert(batch: int, steps: int) -> Graph:
    """A training step of BERT-base, with 100 words."""
    net = encoder_in(Hollow(20), 12, (768, 12), (batch, steps), decomposed=False)
    return updating_graph(graph_of(net.model), Sgd())


def gpt2(batch: int, steps: int, size: Size = GPT2) -> Graph:
    """A training step of GPT-2; the matrix of its scores is its own."""
    graph = graph_of(gpt2_in(Hollow(20), batch, steps, size).model)
    (scores,) = graph.outputs
    rows = Value("rows", DType.FLOAT32, (batch * steps, size.vocabulary))
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
        "BERT-base, 1 of 128": bert(1, 128),
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
    """Shares of the base's peak, and the operations that each adds."""
    steps = {"BERT-base, 16 of 512": bert(16, 512), "GPT-2 small, 8 of 1,024": gpt2(8, 1024)}
    for name, graph in steps.items():
        for share, asked in ((50, 0.5), (30, 5.0), (20, 15.0)):
            started = time.perf_counter()
            found = squeezed(graph, f"{share}%")
            yield {
                "model": name,
                "budget_percent": share,
                **figures(found),
                "asked_percent": asked,
                "seconds": round(time.perf_counter() - started, 2),
            }


def joint() -> Iterator[Row]:
    """GPT-2-XL with half of the operations that block checkpoints add, and with any."""
    graph = gpt2(1, 1024, XL)
    every = squeezed(graph)
    most = int(HALF_OF_BLOCKS * every.squeezed.operations)
    for name, found in (
        ("at most half", squeezed(graph, operations_max=most)),
        ("as little as was found", every),
    ):
        yield {"model": f"GPT-2-XL, 1 of 1,024, {name}", **figures(found)}


def figures(found: SqueezedGraph) -> Row:
    """What a squeezed graph takes and adds."""
    peak = found.squeezed.plan.plan.peak_bytes
    added = found.squeezed.added_operations / found.squeezed.operations
    return {
        "base_mb": megabytes(found.eager_bytes),
        "peak_mb": megabytes(peak),
        "peak_percent": round(100 * peak / found.eager_bytes, 1),
        "times_less": round(found.eager_bytes / peak, 2),
        "added_percent": round(100 * added, 2),
    }


def megabytes(size_bytes: int) -> float:
    """Millions of bytes."""
    return round(size_bytes / 1e6, 1)


SUITES: Mapping[str, Callable[[], Iterator[Row]]] = {
    "reorder": reordered,
    "recompute": recomputed,
    "squeeze": joint,
}


def main(arguments: Sequence[str]) -> None:
    """Run suites, print their rows, and record them where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_training")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    for name in options.suites or SUITES:
        rows = []
        for row in SUITES[name]():
            rows.append(row)
            sys.stdout.write(f"{name}: {', '.join(f'{k} {v}' for k, v in row.items())}\n")
            sys.stdout.flush()
        if options.record:
            append("bench_training", {"suite": name, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
