"""One copy of the weights: memory of processes together, and how fast a prepared model is there.

    python -m benchmarks.bench_share
    python -m benchmarks.bench_share --quick

Memory is what `tightship share` measures: 16 products with matrices of 2048x2048, 256 MiB of
weights, in four processes, beside ONNX Runtime by default and in settings that let its processes
share. Times are those of one process after the other, from loading to the first result.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from benchmarks import models, record
from benchmarks.bench_memory import process
from benchmarks.models import Stored
from onnx import TensorProto, helper, numpy_helper

import tightship

LAYERS = 16
WIDTH = 2048
PROCESSES = 4
ROUNDS = 7
SEED = 20

Row = Mapping[str, Any]


def products(layers: int, width: int, folder: Path) -> Stored:
    """A chain of matrix products, written unless it is there."""
    path, feeds = folder / "products.onnx", folder / "products.feeds.npz"
    if feeds.exists():
        return Stored(path, feeds)
    random = np.random.default_rng(SEED)
    scale = np.float32(width**-0.5)
    weights = [
        numpy_helper.from_array(random.standard_normal((width, width), np.float32) * scale, f"w{n}")
        for n in range(layers)
    ]
    nodes = [helper.make_node("MatMul", [f"v{n}", f"w{n}"], [f"v{n + 1}"]) for n in range(layers)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width])
        for name in ("v0", f"v{layers}")
    ]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    np.savez(feeds, v0=random.standard_normal((1, width), np.float32))
    return Stored(path, feeds)


def keep_bytecode(folder: Path) -> None:
    """Have processes started from now on import compiled modules, as installed ones are."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


def shared(model: Path, processes: int, *options: str) -> Row:
    """Return the JSON of `tightship share`."""
    command = [sys.executable, "-m", "tightship.cli", "share", str(model), "--json"]
    done = subprocess.run(
        [*command, "--procs", str(processes), *options],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    found: Row = json.loads(done.stdout)
    if found["failed"]:
        raise ValueError(found["failed"])
    return found


def first_results(model: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds from loading to the first result by contender, each in new processes."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for row in shared(model, 1)["contenders"]:
            times.setdefault(row["title"], []).append(row["first_ns"][0] / 1e6)
    return {
        title: {"median_ms": statistics.median(found), "least_ms": min(found)}
        for title, found in times.items()
    }


def growth(prepared: Path, feeds: Path) -> dict[str, float]:
    """Return the growth of peak resident bytes over those before loading."""
    done = process("tightship", prepared, feeds)
    if done.returncode != 0:
        raise ValueError(done.stderr)
    grown, size = json.loads(done.stdout)["load_gain_bytes"], prepared.stat().st_size
    return {"growth_bytes": grown, "file_bytes": size, "ratio": grown / size}


def imported(prepared: Path, feeds: Path) -> list[str]:
    """Frameworks that a process has imported which runs a prepared model."""
    code = (
        "import sys, numpy, tightship\n"
        "with tightship.load(sys.argv[1]) as model: model.run(dict(numpy.load(sys.argv[2])))\n"
        "print(*({'onnx', 'google.protobuf', 'onnxruntime', 'torch'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(prepared), str(feeds)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def loading(stored: Stored, rounds: int) -> dict[str, Any]:
    """Measure the load of a prepared file: time to the first result, and memory."""
    prepared = stored.model.with_suffix(".tship")
    tightship.prepare(stored.model, prepared)
    return {
        "first_results": first_results(stored.model, rounds),
        "growth": growth(prepared, stored.feeds),
        "imported": imported(prepared, stored.feeds),
        "parts_ms": parts(prepared, stored.feeds, rounds),
    }


def parts(prepared: Path, feeds: Path, rounds: int) -> dict[str, float]:
    """Medians of where the time to the first result goes, in milliseconds."""
    command = [sys.executable, "-m", "benchmarks.load_parts", str(prepared), str(feeds)]
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        done = subprocess.run(
            command, cwd=record.ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
        found.append(json.loads(done.stdout))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def ratio(row: Row) -> float:
    """Return the ratio of ONNX Runtime's default time to the first result to ours."""
    times = [each["median_ms"] for each in row["first_results"].values()]
    return float(times[1] / times[0])


def table(together: Row, loaded: Mapping[str, Row]) -> str:
    """All that was measured, for a terminal."""
    lines = [f"{together['processes']} processes of {together['model']}; MiB together"]
    contenders: Sequence[Row] = together["contenders"]
    least = min(each["pss_bytes"] for each in contenders[1:])
    for each in contenders:
        over = each["pss_bytes"] / least
        lines.append(
            f"  {each['title']:<44}{each['pss_bytes'] / 2**20:>8.1f} PSS{over:>6.2f}"
            f"{each['run_ns'] / 1e6:>8.1f} ms a run"
        )
    for name, row in loaded.items():
        lines.append(f"{name}: ONNX Runtime takes {ratio(row):.1f} times as long to a first result")
        for title, times in row["first_results"].items():
            lines.append(
                f"  {title:<44}{times['median_ms']:>8.1f} ms{times['least_ms']:>8.1f} least"
            )
        said = ", ".join(f"{part} {time:.1f}" for part, time in row["parts_ms"].items())
        lines.append(f"  of ours, in ms: {said}")
        lines.append(f"  growth while loading: {row['growth']['ratio']:.3f} of the file")
        lines.append(f"  imported: {' '.join(row['imported']) or 'no framework'}")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_share")
    parser.add_argument("--folder", type=Path, help="keep the models here between runs")
    parser.add_argument("--models", default="products,resnet50", help="whose loading is timed")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the matrices")
    parser.add_argument("--quick", action="store_true", help="one round, nothing recorded")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    rounds = 1 if options.quick else ROUNDS
    with tempfile.TemporaryDirectory(prefix="tightship-bench-") as temporary:
        keep_bytecode(Path(temporary) / "bytecode")
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        chain = products(LAYERS, options.width, folder)
        together = shared(chain.model, PROCESSES, "--peers")
        loaded = {
            name: loading(chain if name == "products" else models.stored(name, folder), rounds)
            for name in options.models.split(",")
        }
    figures = {"together": together, "loading": loaded}
    print(json.dumps(figures) if options.json else table(together, loaded))
    if not options.quick:
        path = record.append("bench_share", figures)
        print(f"recorded in {path.relative_to(record.ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
