"""Budgets for the networks of "Training Deep Nets with Sublinear Memory Cost".

    python -m benchmarks.bench_sublinear [--depths 200,992] [--shares 0.5,0.3] [--record]

Chen, Xu, Zhang and Guestrin (2016) train 32 pictures of 224 x 224 with bottleneck blocks, each
convolution with a batch normalization and a leaky ReLU behind it, no ReLU behind a sum. They report
48 GB for 1,000 layers with memory shared and used in place, 7 GB with segments computed again, and
30 % more time. Blocks by stage are those of their program's example, 3, 24, 36 and 3 for 200
layers, and five times these for 992; the paper does not give those of its deepest one. A row is one
budget, as a share of the peak of the steps in the order given: the peak of the verified plan,
gradients of weights included, and operations added as a share of all. Both are the same on any
machine.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np
from benchmarks.hollow import Hollow, graph_of
from benchmarks.record import append

from tightship.cost.squeeze import GraphSqueezing
from tightship.cost.training import updating_graph
from tightship.graph import Graph
from tightship.graph.backward import Sgd
from tightship.planner import verify

MIB = 2**20
STAGES = {200: (3, 24, 36, 3), 992: (15, 120, 180, 15)}
"""Blocks of each stage by layers with weights."""
SHARES = "0.5,0.3,0.2,0.146,0.1"
"""Budgets; the fourth is 7 of 48."""
PICTURES = 32
SLOPE = 0.25


def network(stages: Sequence[int]) -> Graph:
    """Return a training step of a network: forward, backward, and an update by SGD."""
    net = Hollow(20)
    x = net.input("x", np.zeros((PICTURES, 3, 224, 224), np.float32))
    x = net("MaxPool", _convolved(net, x, (3, 64), 7, 2), kernel_shape=[3, 3], strides=[2, 2])
    channels = 64
    for stage, count in enumerate(stages):
        inner = 64 << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = _convolved(net, x, (channels, inner), 1, 1)
            y = _convolved(net, y, (inner, inner), 3, stride)
            y = _convolved(net, y, (inner, 4 * inner), 1, 1)
            if not block:
                x = _convolved(net, x, (channels, 4 * inner), 1, stride)
            channels = 4 * inner
            x = net("Add", x, y)
    x = net("Flatten", net("GlobalAveragePool", x))
    net.output(net("Gemm", x, net.weight(1000, channels), net.weight(1000), transB=1))
    return updating_graph(graph_of(net.case().model), Sgd())


def _convolved(net: Hollow, x: str, channels: tuple[int, int], side: int, stride: int) -> str:
    given, made = channels
    weight = net.weight(made, given, side, side)
    y = net("Conv", x, weight, strides=[stride] * 2, pads=[side // 2] * 4)
    y = net("BatchNormalization", y, *(net.weight(made) for _ in range(4)))
    return net("LeakyRelu", y, alpha=SLOPE)


def rows_of(depth: int, shares: Sequence[float]) -> Iterator[dict[str, object]]:
    """Plan a network within budgets."""
    squeezing = GraphSqueezing(network(STAGES[depth]))
    given = squeezing.within_bytes(1 << 62).squeezed.given_peak_bytes
    for share in shares:
        started = time.process_time()
        found = squeezing.within_bytes(int(share * given)).squeezed
        plan = found.plan.plan
        verify(plan)
        yield {
            "layers": depth,
            "given_gib": round(given / 2**30, 2),
            "budget_percent": round(100 * share, 1),
            "peak_gib": round(plan.peak_bytes / 2**30, 2),
            "added_percent": round(100 * found.added_operations / found.operations, 2),
            "seconds": round(time.process_time() - started, 1),
        }


def main(arguments: Sequence[str]) -> None:
    """Plan, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_sublinear")
    parser.add_argument("--depths", default="200", help=f"of {', '.join(map(str, STAGES))}")
    parser.add_argument("--shares", default=SHARES, help="budgets over the peak of all steps")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    options = parser.parse_args(arguments)
    rows = []
    for depth in map(int, options.depths.split(",")):
        for row in rows_of(depth, [float(share) for share in options.shares.split(",")]):
            sys.stdout.write(", ".join(f"{key} {value}" for key, value in row.items()) + "\n")
            sys.stdout.flush()
            rows.append(row)
    if options.record:
        append("bench_sublinear", {"rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
