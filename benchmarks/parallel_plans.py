"""Memory of training if steps that do not wait for each other run at once.

    python -m benchmarks.parallel_plans [--record]

Networks of the memory note's table and today's, as graphs with their backward pass, batch
normalization by the batch. Bytes are those of tensors at 64 bytes of alignment; weights, their
gradients and inputs lie outside the arena. Gradients of weights are steps of their own, which
no step waits for, or are joined to those of data, as frameworks have them. Ratios are to the
lower bound of the same steps run one after another, in-place included. Paths are the note's
colouring: bytes are shared only along a path.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from benchmarks.record import append
from tests.zoo.gpt2 import gpt2
from tests.zoo.inception_bn import inception_bn
from tests.zoo.net import Case
from tests.zoo.resnet import resnet
from tests.zoo.transformer import encoder

from tightship.cost.schedule import schedule_of
from tightship.cost.training import training_graph
from tightship.frontend.onnx import read_bytes
from tightship.graph import Graph
from tightship.graph.backward import with_cross_entropy
from tightship.planner import Schedule, lower_bound, place_schedule, problem_of
from tightship.planner.parallel.added_edges import added_edges
from tightship.planner.parallel.parallel_plan import Paths, plan_parallel
from tightship.planner.parallel.side_steps import with_side_steps_joined
from tightship.planner.verify_parallel import verify_parallel

NETWORKS: Mapping[str, tuple[Callable[[], Case], int]] = {
    "Inception-BN, 32": (lambda: inception_bn(32), 0),
    "ResNet-50, 32": (lambda: resnet(32, folded=False), 0),
    "BERT-base, 8 of 512": (lambda: encoder(12, 768, 12, 512, decomposed=False, batch=8), 1),
    "GPT-2, 4 of 128": (lambda: gpt2(4), 0),
}
"""Functions that make each network, with the index of the output for the loss."""

PATHS = (1, 2, 4, 8)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallel_plans")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    found = {}
    for row in rows():
        found[row.pop("model")] = row
        sys.stdout.write(f"{list(found)[-1]}: {row}\n")
    if options.record:
        append("parallel_plans", {"rows": found})


def rows() -> Iterator[dict[str, object]]:
    """Figures of every network, gradients of weights apart and joined."""
    for name, (make, output) in NETWORKS.items():
        step, gradients = training_graph(with_loss(read_bytes(make().model), output))
        fine = schedule_of(step, held=gradients).schedule
        for granularity, schedule in (("apart", fine), ("joined", with_side_steps_joined(fine))):
            yield {"model": f"{name}, {granularity}", **figures(schedule)}


def with_loss(graph: Graph, output: int) -> Graph:
    """The graph ending in a cross entropy of one of its outputs."""
    name = graph.outputs[output]
    graph = with_cross_entropy(graph, name, "labels")
    return replace(graph, outputs=(f"{name}.loss",))


def figures(schedule: Schedule) -> dict[str, object]:
    """Bytes of the bound, ratios to it, edges, and seconds."""
    bound = lower_bound(problem_of(schedule).problem)
    serial = place_schedule(schedule)
    start = time.perf_counter()
    free = plan_parallel(schedule)
    seconds = time.perf_counter() - start
    edges = added_edges(serial)
    verify_parallel(serial, [(edge.before, edge.after) for edge in edges])
    return {
        "steps": len(schedule.steps),
        "bound_bytes": bound,
        "one_after_another": round(serial.plan.peak_bytes / bound, 4),
        "edges_it_adds": len(edges),
        "at_once": round(free.plan.peak_bytes / bound, 4),
        "edges_at_once_adds": len(added_edges(free)),
        "seconds": round(seconds, 2),
        "along_paths": {
            count: round(
                plan_parallel(schedule, Paths(count, is_required=True)).plan.peak_bytes / bound, 3
            )
            for count in PATHS
        },
    }


if __name__ == "__main__":
    main(sys.argv[1:])
