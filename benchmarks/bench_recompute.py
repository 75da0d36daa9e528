"""Computes what each budget of memory costs in operations, for whole training steps.

    python -m benchmarks.bench_recompute [NETWORK ...] [--record]

A step is the forward pass with its loss, the backward pass and an update by SGD for each weight, as
`tightship cost MODEL --frontier` has it. Bytes are those of tensors at 64 bytes of alignment;
weights and inputs lie outside the arena, gradients of weights in it. A row is one plan of the
frontier: its peak, as MiB and as a share of what the steps take in the order given, operations
added as a share of all, and what `recompute_bound` proves to be needed within that peak. Every
plan's offsets are those of the planner, and are verified. For the uniform chains, `chen` is the
schedule of equal segments, one level, whose own peak is the budget; `revolve` the optimum of
Griewank and Walther for some number of kept values. Both are written by hand with the same aliases
and offsets. Bytes and operations are the same on any machine; seconds are of the processor, on one
thread.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import isqrt

import numpy as np
from benchmarks.bench_training import bert, gpt2
from benchmarks.hollow import Hollow, graph_of
from benchmarks.record import append
from tests.zoo.inception_bn import inception_bn
from tests.zoo.resnet import resnet

from tightship.cost.frontier import frontier_of
from tightship.cost.squeeze import GraphSqueezing, priced
from tightship.cost.training import updating_graph
from tightship.frontend.onnx import read_bytes
from tightship.graph import Graph
from tightship.graph.backward import Sgd
from tightship.planner import place_schedule, verify
from tightship.planner.chain import Chain
from tightship.planner.recompute import NEVER, ties_early, turn_of
from tightship.planner.recompute_bound import least_operations
from tightship.planner.replayed import replayed

Row = dict[str, object]
MIB = 2**20


def chain(length: int, *, residual: bool = False) -> Graph:
    """A training step of products and Tanh; each value is 1 MiB, and so is each weight."""
    net = Hollow(20)
    x = net.input("x", np.zeros((512, 512), np.float32))
    for _ in range(length):
        y = net("Tanh", net("MatMul", x, net.weight(512, 512)))
        x = net("Add", x, y) if residual else y
    net.output(x)
    return updating_graph(graph_of(net.case().model), Sgd())


NETWORKS: Mapping[str, Callable[[], Graph]] = {
    "chain-64": lambda: chain(64),
    "chain-144": lambda: chain(144),
    "residual-64": lambda: chain(64, residual=True),
    "resnet-50, 32": lambda: trained(resnet(32, folded=False).model),
    "inception-bn, 32": lambda: trained(inception_bn(32).model),
    "bert, 8 of 512": lambda: bert(8, 512),
    "gpt-2, 8 of 1,024": lambda: gpt2(8, 1024),
}


def trained(model: bytes) -> Graph:
    """A training step of a model, with a squared error."""
    return updating_graph(read_bytes(model), Sgd())


def curve(name: str) -> Iterator[Row]:
    """The plans of a network's frontier."""
    graph = NETWORKS[name]()
    started = time.process_time()
    found = frontier_of(GraphSqueezing(graph), "training")
    seconds = time.process_time() - started
    for point in found.points:
        squeezed = point.squeezed
        plan = squeezed.plan.plan
        verify(plan)
        schedule, operations = priced(point.once)
        least = least_operations(schedule, operations, plan.peak_bytes)
        yield {
            "network": name,
            "peak_mib": round(plan.peak_bytes / MIB, 2),
            "peak_percent": round(100 * plan.peak_bytes / squeezed.given_peak_bytes, 1),
            "added_percent": round(100 * squeezed.added_operations / squeezed.operations, 2),
            "least_percent": round(100 * least / squeezed.operations, 2),
            "steps_again": squeezed.clones,
            "tiles": point.tiles,
        }
    least_mib = round(min(each.least_bytes for each in found.points) / MIB, 2)
    yield {"network": name, "least_mib": least_mib, "curve_seconds": round(seconds, 1)}


def beside(name: str) -> Iterator[Row]:
    """Schedules written by hand for a uniform chain, and what is found within their peaks."""
    graph = NETWORKS[name]()
    schedule, operations = priced(graph)
    early, order = ties_early(schedule)
    costs = [operations[step] for step in order]
    turn = turn_of(early)
    atoms = Chain(early, costs, turn)
    squeezing = GraphSqueezing(graph)
    total = sum(cost for cost in costs if cost != NEVER)
    ways = {"chen": chen(atoms.count, isqrt(atoms.count))}
    ways |= {f"revolve {slots}": revolve(0, atoms.count, slots) for slots in (2, 3, 4, 6, 8, 12)}
    for way, passes in ways.items():
        flat = [number for each in passes for number in each]
        made, origin = replayed(early, atoms.runs(flat), turn)
        peak = place_schedule(made).plan.peak_bytes
        added = sum(costs[step] for step in origin) - sum(costs)
        found = squeezing.within_bytes(peak).squeezed
        yield {
            "network": name,
            "by_hand": way,
            "peak_mib": round(peak / MIB, 2),
            "added_percent": round(100 * added / total, 2),
            "found_mib": round(found.plan.plan.peak_bytes / MIB, 2),
            "found_percent": round(100 * found.added_operations / found.operations, 2),
        }


SWEEP, BACK = 0, 3
Passes = list[tuple[int, int]]


def chen(count: int, length: int) -> Passes:
    """Passes of equal segments: each runs again as a whole before its way back."""
    found = [(SWEEP, atom) for atom in range(count)]
    for start in reversed(range(0, count, length)):
        atoms = range(start, min(start + length, count))
        found += [(SWEEP, atom) for atom in atoms]
        found += [(BACK, atom) for atom in reversed(atoms)]
    return found


@cache
def advances(count: int, slots: int) -> tuple[int, int]:
    """The fewest forward passes of single atoms, and the first atom whose input is kept."""
    if count <= 1:
        return 0, 0
    if not slots:
        return count * (count - 1) // 2, count - 1
    return min(
        (at + advances(count - at, slots - 1)[0] + advances(at, slots)[0], at)
        for at in range(1, count)
    )


def revolve(start: int, stop: int, slots: int) -> Passes:
    """Passes of Revolve with so many inputs kept besides the first."""
    if stop - start == 1:
        return [(SWEEP, start), (BACK, start)]
    at = start + advances(stop - start, slots)[1]
    first = [(SWEEP, atom) for atom in range(start, at)]
    return [*first, *revolve(at, stop, max(0, slots - 1)), *revolve(start, at, slots)]


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_recompute")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="; ".join(NETWORKS))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    for name in options.networks or NETWORKS:
        rows = [*(beside(name) if name.startswith("chain") else ()), *curve(name)]
        for row in rows:
            sys.stdout.write(", ".join(f"{key} {value}" for key, value in row.items()) + "\n")
        sys.stdout.flush()
        if options.record:
            append("bench_recompute", {"suite": name, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
