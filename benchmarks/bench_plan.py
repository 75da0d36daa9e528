"""Time of `tightship plan` from the shell, and whether weights make it longer.

    python -m benchmarks.bench_plan

The light models as the onnx package has them, then 32 matrix products whose weights, in a
file of their own, take 2 GiB (a sparse file, none of it is written), against the same with
matrices of 64 x 64. Processes alternate round by round; medians.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from benchmarks import record
from onnx import TensorProto, external_data_helper, helper
from tests.zoo import light

PRODUCTS = 32
SIDES = {"products_512_KiB": 64, "products_2_GiB": 4096}
PARTS = ("numpy", "tightship", "onnx", "read", "oneDNN", "lower", "place")


@dataclass(frozen=True, slots=True)
class Row:
    """One model: wall time of the command, and of the parts of another process.

    `started_ms` is the time of a Python that ends at once, in the same rounds.
    """

    model: str
    median_ms: float
    least_ms: float
    started_ms: float
    parts_ms: Mapping[str, float]


def products(folder: Path, name: str) -> Path:
    """A chain of square matrix products with its weights in a sparse file."""
    side = SIDES[name]
    size = side * side * 4
    weights = []
    for index in range(PRODUCTS):
        tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[side, side])
        tensor.raw_data = b""
        external_data_helper.set_external_data(
            tensor, f"{name}.bin", offset=index * size, length=size
        )
        weights.append(tensor)
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(PRODUCTS)]
    ends = [
        helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [8, side]) for i in (0, PRODUCTS)
    ]
    graph = helper.make_graph(nodes, name, ends[:1], ends[1:], weights)
    opset = helper.make_opsetid("", 20)
    path = folder / f"{name}.onnx"
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    for weight in model.graph.initializer:
        weight.ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    with (folder / f"{name}.bin").open("wb") as file:
        file.truncate(PRODUCTS * size)
    return path


def wall_ms(*arguments: str) -> float:
    """Milliseconds that a Python process takes from start to end."""
    start = time.perf_counter_ns()
    subprocess.run(
        [sys.executable, *arguments], cwd=record.ROOT, check=True, stdout=subprocess.DEVNULL
    )
    return (time.perf_counter_ns() - start) / 1e6


def plan_ms(path: Path) -> float:
    """Time `tightship plan PATH`."""
    return wall_ms("-m", "tightship.cli", "plan", str(path))


def parts_of(path: Path) -> dict[str, float]:
    """Time the parts of one plan."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.plan_parts", str(path)],
        cwd=record.ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def timed(paths: Mapping[str, Path], rounds: int) -> list[Row]:
    """Every model once a round, in an order that turns round, after one that warms the disk."""
    walls: dict[str, list[float]] = {name: [] for name in paths}
    started: list[float] = []
    parts: dict[str, list[dict[str, float]]] = {name: [] for name in paths}
    for index in range(rounds + 1):
        for name in list(paths)[:: 1 if index % 2 == 0 else -1]:
            walls[name].append(plan_ms(paths[name]))
            parts[name].append(parts_of(paths[name]))
        started.append(wall_ms("-c", "pass"))
    return [
        Row(
            name,
            median_ms=round(float(np.median(taken[1:])), 1),
            least_ms=round(min(taken[1:]), 1),
            started_ms=round(float(np.median(started[1:])), 1),
            parts_ms={
                part: round(float(np.median([lap[part] for lap in parts[name][1:]])), 1)
                for part in PARTS
            },
        )
        for name, taken in walls.items()
    ]


def paired_ratio(folder: Path, rounds: int) -> tuple[float, float, float]:
    """Quartiles of the time with 2 GiB of weights over that with 512 KiB, round by round."""
    small, large = (products(folder, name) for name in SIDES)
    ratios = []
    for index in range(rounds):
        if index % 2 == 0:
            first, second = plan_ms(small), plan_ms(large)
        else:
            second, first = plan_ms(large), plan_ms(small)
        ratios.append(second / first)
    low, middle, high = (round(float(q), 3) for q in np.quantile(ratios, (0.25, 0.5, 0.75)))
    return low, middle, high


def table(rows: Sequence[Row]) -> str:
    """Milliseconds, at most 100 columns."""
    names = "".join(f"{name:>10}" for name in PARTS)
    lines = [f"{'ms':<18}{'plan':>8}{'least':>8}{names}"]
    for row in rows:
        parts = "".join(f"{row.parts_ms[name]:>10.0f}" for name in PARTS)
        lines.append(f"{row.model:<18}{row.median_ms:>8.0f}{row.least_ms:>8.0f}{parts}")
    lines.append(f"A Python that ends at once takes {rows[0].started_ms:.0f} ms.")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_plan")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 rounds, nothing recorded")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds
    with tempfile.TemporaryDirectory(prefix="tightship-bench-") as temporary:
        folder = Path(temporary)
        paths = {name: light.path_of(name) for name in light.NAMES}
        paths |= {name: products(folder, name) for name in SIDES}
        rows = timed(paths, rounds)
        ratio = paired_ratio(folder, 3 * rounds)
    figures = {"rows": [asdict(row) for row in rows], "weights_ratio_quartiles": ratio}
    if options.json:
        print(json.dumps(figures))
    else:
        print(table(rows))
        low, middle, high = ratio
        print(f"2 GiB of weights over 512 KiB: {middle:.3f} [{low:.3f}-{high:.3f}]")
    if not options.quick:
        path = record.append("bench_plan", figures)
        print(f"recorded in {path.relative_to(record.ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
