"""Training steps that run, beside torch eager: how long they take, and in how much memory.

    python -m benchmarks.training_steps [--torch-python PYTHON] [--threads N] [--quick] [--record]

ResNet-50 on images of 224 x 224 and GPT-2 small on texts of 128 words, a mean cross entropy and an
update by SGD. Each side is a process of its own that waits while the other runs; they alternate.
Times are medians over turns of the median of a turn's steps; `ratio` is the median over turns of
ours over torch's in the same turn, `cpu_ratio` the same of processor time. Memory is the high-water
mark of what the process has resident: all of it, and what it gains over what importing took.
Networks, batches and precision (float32) are the same on both sides; weights are not. `recompute`
is the share of operations that our step may do again to take less.

torch is looked for in this interpreter's environment, or in the one of `--torch-python`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.record import ROOT, append
from onnx import ModelProto, helper, load_from_string, numpy_helper
from tests.zoo.gpt2 import gpt2
from tests.zoo.resnet import resnet

TURNS = 3
STEPS = 2

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Net:
    """A network in a size.

    Attributes:
        length: Pixels of a side, or words of a text.
        recompute: What our step may do again.
    """

    name: str
    batch: int
    length: int
    recompute: float = 0.0


NETS = (
    Net("resnet50", 8, 224),
    Net("resnet50", 16, 224),
    Net("resnet50", 16, 224, recompute=0.05),
    Net("gpt2", 1, 128),
    Net("gpt2", 4, 128),
    Net("gpt2", 4, 128, recompute=0.05),
)


class Side:
    """A process that makes steps on request."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.start: dict[str, Any] = self._answer()

    def turn(self, count: int) -> dict[str, Any]:
        """Seconds of so many steps, and the high-water mark."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"GO {count}\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            message = f"A side ended with exit code {self._process.wait()}."
            raise ChildProcessError(message)
        found: dict[str, Any] = json.loads(line)
        return found


def stored(net: Net, folder: Path) -> tuple[Path, Path]:
    """The network's file, and that of what a step is fed."""
    random = np.random.default_rng(0)
    if net.name == "resnet50":
        case = resnet(net.batch, net.length, folded=False)
        model, labels = case.model, random.integers(0, 1000, net.batch)
    else:
        case = gpt2(net.batch, net.length)
        rows = net.batch * net.length
        given = load_from_string(case.model)
        model, labels = _by_rows(given, rows).SerializeToString(), random.integers(0, 50257, rows)
    path, feeds = folder / f"{net.name}.onnx", folder / f"{net.name}.npz"
    path.write_bytes(model)
    with feeds.open("wb") as file:
        np.savez(file, allow_pickle=False, labels=labels, **case.feeds)
    return path, feeds


def _by_rows(model: ModelProto, rows: int) -> ModelProto:
    """The model with its scores a row for each word: classes on axis 1."""
    (scores,) = model.graph.output
    words = scores.type.tensor_type.shape.dim[2].dim_value
    shape = numpy_helper.from_array(np.array([rows, words]), "rows.shape")
    model.graph.initializer.append(shape)
    model.graph.node.append(helper.make_node("Reshape", [scores.name, "rows.shape"], ["rows"]))
    scores.CopyFrom(helper.make_tensor_value_info("rows", 1, [rows, words]))
    return model


def measured(net: Net, torch_python: str, threads: int, turns: int) -> Row:
    """A row of a network."""
    script = Path(__file__).with_name("torch_step.py")
    with tempfile.TemporaryDirectory() as folder:
        model, feeds = stored(net, Path(folder))
        own = Side([sys.executable, "-m", "benchmarks.own_step", str(model), str(feeds),
                    str(threads), str(net.recompute)])  # fmt: skip
        theirs = Side([torch_python, str(script), net.name, str(net.batch), str(net.length),
                       str(threads)])  # fmt: skip
    sides = own, theirs
    for side in sides:
        side.turn(1)
    taken = [[side.turn(STEPS) for side in sides] for _ in range(turns)]
    for side in sides:
        side.close()
    walls = [[median(each["walls"]) for each in turn] for turn in taken]
    cpus = [[median(each["cpus"]) for each in turn] for turn in taken]
    peaks = [each["peak"] for each in taken[-1]]
    gained = [peak - side.start["imported"] for peak, side in zip(peaks, sides, strict=True)]
    return {
        "net": f"{net.name}, {net.batch} of {net.length}",
        "recompute": net.recompute,
        "ours_s": round(median(one for one, _ in walls), 3),
        "torch_s": round(median(other for _, other in walls), 3),
        "ratio": _ratio(walls),
        "cpu_ratio": _ratio(cpus),
        "ours_mb": round(peaks[0] / 1e6),
        "torch_mb": round(peaks[1] / 1e6),
        "peak_ratio": round(peaks[0] / peaks[1], 3),
        "gained_ratio": round(gained[0] / gained[1], 3),
        "planned_mb": round(own.start["planned"] / 1e6),
        "torch": theirs.start["version"],
    }


def _ratio(pairs: Sequence[Sequence[float]]) -> float:
    return round(median(one / other for one, other in pairs), 3)


def steps(torch_python: str = sys.executable, threads: int = 2, *, quick: bool = False,
          ) -> Iterator[Row]:  # fmt: skip
    """A row for each network; the two smallest if `quick`.

    Raises:
        SystemExit: The interpreter has no torch.
    """
    found = subprocess.run([torch_python, "-c", "import torch"], capture_output=True, check=False)
    if found.returncode != 0:
        raise SystemExit(
            f"`{torch_python}` has no torch, which training steps are measured beside; give an "
            "interpreter that has by `--torch-python`."
        )
    for net in (NETS[0], NETS[3]) if quick else NETS:
        yield measured(net, torch_python, threads, 1 if quick else TURNS)


def main(arguments: Sequence[str]) -> None:
    """Print a row for each network, and record them where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_steps")
    parser.add_argument("--torch-python", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    rows = []
    for row in steps(options.torch_python, options.threads, quick=options.quick):
        rows.append(row)
        sys.stdout.write(", ".join(f"{key} {value}" for key, value in row.items()) + "\n")
        sys.stdout.flush()
    if options.record:
        append("bench_training", {"suite": "step", "threads": options.threads, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
