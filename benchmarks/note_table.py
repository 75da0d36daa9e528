"""The memory note's table for its network and today's, and how long `tightship cost` takes.

Bytes are those of `tightship cost`: tensors node by node, or elementwise steps joined to what they
read, at 64 bytes of alignment; weights, their gradients and inputs outside the arena. A row is
`reached` where the arena is the lower bound with in-place. The last row is a deep GPT-2 in the
spelling of older exporters, some 5,000 operators: seconds of the processor of `cost_of` behind the
reading, the least of five, and of a shell's command, the least of three.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.hollow import Hollow
from benchmarks.parallel_plans import NETWORKS
from tests.zoo.attention import TORCHSCRIPT, Heads
from tests.zoo.gpt2 import Size, gpt2_in

from tightship.cost.model_cost import cost_of
from tightship.frontend.onnx import read_bytes

DEEP = Size(93, Heads(25, 64), 50257, 1024)


def rows() -> Iterator[dict[str, object]]:
    """The table, and the seconds that it takes."""
    for name, (make, _) in NETWORKS.items():
        for row in cost_of(read_bytes(make().model), name).rows:
            columns = row.columns
            yield {
                "model": f"{name}, {row.pass_name}, {row.granularity}",
                "steps": row.step_count,
                "note_mb": round(columns.both_bytes / 1e6, 1),
                "arena_mb": round(columns.arena_bytes / 1e6, 1),
                "bound_mb": round(columns.lower_bound_in_place_bytes / 1e6, 1),
                "note_over_arena": round(columns.both_bytes / columns.arena_bytes, 2),
                "reached": columns.arena_bytes <= columns.lower_bound_in_place_bytes,
            }
    yield seconds()


def seconds() -> dict[str, object]:
    """Time the cost of many operators."""
    model = gpt2_in(Hollow(TORCHSCRIPT), 1, 1024, DEEP).model
    graph = read_bytes(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deep.onnx"
        path.write_bytes(model)
        shell = [sys.executable, "-m", "tightship.cli", "cost", str(path), "--forward-only"]
        return {
            "model": f"GPT-2 of {DEEP.layers} layers",
            "operators": len(graph.nodes),
            "cost_seconds": least(5, lambda: cost_of(graph, "deep", forward_only=True)),
            "shell_seconds": least(
                3, lambda: subprocess.run(shell, check=True, stdout=subprocess.DEVNULL)
            ),
        }


def least(count: int, run: Callable[[], object]) -> float:
    """The least seconds that several runs took, in this process and in those they waited for."""
    taken = []
    for _ in range(count):
        before = sum(os.times()[:4])
        run()
        taken.append(sum(os.times()[:4]) - before)
    return round(min(taken), 2)
