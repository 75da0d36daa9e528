"""Kernels that run ONNX's node suite, and the cases that pass.

Cases are counted by the slowest tier that one of their steps needs.

    python -m benchmarks.node_coverage
    python -m benchmarks.node_coverage --without reference
    python -m benchmarks.node_coverage --quick
"""

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass

import numpy as np
import onnx
from benchmarks import record
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from tests.backend.comparison import IMPOSSIBLE, failure_of

import tightship.backend
from tightship.engine.plan.memory_plan import PlannedStep
from tightship.errors import TightshipError

TIERS = (
    "oneDNN and views",
    "native",
    "NumPy",
    "control flow and optionals",
    "onnx.reference",
    "none",
)
"""Fastest first; a case counts in the last one that it needs."""
MOVING = frozenset({"ChannelShuffle", "Concat", "Reorder", "Transpose"})
"""Operators that oneDNN runs by copying."""
OF_KERNEL = {"onednn": TIERS[0], "native": "native", "numpy": "NumPy"}


@dataclass(frozen=True, slots=True)
class Coverage:
    """Cases by the slowest tier they need.

    `any_onednn` counts cases with a step on oneDNN that computes, not only copies; `any_native`
    those with a step on oneDNN or a native kernel; `passing` those that ONNX's own runner passes.
    `slow_operators` says how many cases each operator sends to NumPy and to `onnx.reference`.
    """

    onnx_version: str
    without: tuple[str, ...]
    cases: int
    passing: int
    any_onednn: int
    any_native: int
    by_tier: dict[str, int]
    slow_operators: dict[str, dict[str, int]]


def tier_of(step: PlannedStep) -> str:
    """The tier that a step runs in."""
    if step.kernel == "reference":
        return "onnx.reference" if step.implementation == "onnx.reference" else TIERS[3]
    return OF_KERNEL[step.kernel]


def computes_on_onednn(step: PlannedStep) -> bool:
    """Whether oneDNN does more for a step than to move elements."""
    return step.kernel == "onednn" and step.operator not in MOVING


def steps_of(case: TestCase, without: Collection[str]) -> tuple[PlannedStep, ...]:
    """The steps of a case's model, for the shapes of its first inputs."""
    inputs = [
        numpy_helper.to_array(stored) if isinstance(stored, onnx.TensorProto) else stored
        for stored in case.data_sets[0][0]
    ]
    return tightship.backend.prepare(case.model, without=without).model_for(inputs).plan.steps


def measure(cases: Iterable[TestCase], without: tuple[str, ...] = ()) -> Coverage:
    """Plan and run every case, and count."""
    by_tier: Counter[str] = Counter(dict.fromkeys(TIERS, 0))
    operators: dict[str, Counter[str]] = {"NumPy": Counter(), "onnx.reference": Counter()}
    found: Counter[str] = Counter()
    for case in cases:
        try:
            steps = steps_of(case, without)
        except TightshipError:
            by_tier["none"] += 1
            continue
        tiers = {tier_of(step) for step in steps}
        by_tier[max(tiers, key=TIERS.index, default=TIERS[0])] += 1
        found["onednn"] += any(computes_on_onednn(step) for step in steps)
        found["native"] += bool({TIERS[0], "native"} & tiers)
        found["passing"] += case.name not in IMPOSSIBLE and failure_of(case, without) is None
        for tier, counted in operators.items():
            counted.update({step.operator for step in steps if tier_of(step) == tier})
    ordered = {tier: dict(counted.most_common()) for tier, counted in operators.items()}
    return Coverage(onnx.__version__, without, by_tier.total(), found["passing"], found["onednn"],
                    found["native"], dict(by_tier), ordered)  # fmt: skip


def main() -> None:
    """Print the table, or with `--json` everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node_coverage")
    parser.add_argument("--json", action="store_true", help="everything, for machines")
    parser.add_argument("--quick", action="store_true", help="record nothing")
    parser.add_argument("--without", action="append", default=[], metavar="PASS",
                        help="leave out a pass, or `reference`")  # fmt: skip
    options = parser.parse_args()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        coverage = measure(load_model_tests(kind="node"), tuple(options.without))
    if not options.quick:
        record.append("node_coverage", asdict(coverage))
    if options.json:
        print(json.dumps(asdict(coverage), indent=2))
        return
    left_out = f", without {', '.join(coverage.without)}" if coverage.without else ""
    print(f"onnx {coverage.onnx_version}: {coverage.cases} node cases{left_out}")
    for tier, count in coverage.by_tier.items():
        print(f"{tier:<28}{count:>6}{count / coverage.cases:>8.1%}")
    print(f"{'pass':<28}{coverage.passing:>6}{coverage.passing / coverage.cases:>8.1%}")
    print(f"computing on oneDNN: {coverage.any_onednn}; on oneDNN or native: {coverage.any_native}")
    for tier, counted in coverage.slow_operators.items():
        names = [f"{name} {count}" for name, count in counted.items()]
        print(f"on {tier}: {', '.join(names) or 'nothing'}")


if __name__ == "__main__":
    main()
