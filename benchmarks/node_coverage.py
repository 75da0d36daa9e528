"""Which kernels run ONNX's node suite.

Cases are counted by the slowest tier that one of their steps needs. No case is run.

    python benchmarks/node_coverage.py
    python benchmarks/node_coverage.py --json > coverage.json
"""

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

import tightship.backend
from tightship.engine.memory_plan import PlannedStep
from tightship.errors import TightshipError

TIERS = (
    "oneDNN and views",
    "NumPy kernels",
    "control flow and optionals",
    "onnx.reference",
    "none",
)
"""Fastest first; a case counts in the last one that it needs."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Cases by tier, and for `onnx.reference` how many cases each operator sends there."""

    onnx_version: str
    cases: int
    by_tier: dict[str, int]
    reference_operators: dict[str, int]


def tier_of(step: PlannedStep) -> str:
    """The tier that a step runs in."""
    if step.kernel == "reference":
        return TIERS[3] if step.implementation == "onnx.reference" else TIERS[2]
    return TIERS[1] if step.kernel == "numpy" else TIERS[0]


def steps_of(case: TestCase) -> tuple[PlannedStep, ...]:
    """The steps of a case's model, for the shapes of its first inputs."""
    inputs = [
        numpy_helper.to_array(stored) if isinstance(stored, onnx.TensorProto) else stored
        for stored in case.data_sets[0][0]
    ]
    return tightship.backend.prepare(case.model).model_for(inputs).plan.steps


def measure(cases: Iterable[TestCase]) -> Coverage:
    """Plan every case and count."""
    by_tier: Counter[str] = Counter(dict.fromkeys(TIERS, 0))
    operators: Counter[str] = Counter()
    for case in cases:
        try:
            steps = steps_of(case)
        except TightshipError:
            by_tier["none"] += 1
            continue
        tiers = {tier_of(step) for step in steps} | {TIERS[0]}
        by_tier[max(tiers, key=TIERS.index)] += 1
        operators.update({step.operator for step in steps if tier_of(step) == TIERS[3]})
    ordered = dict(operators.most_common())
    return Coverage(onnx.__version__, by_tier.total(), dict(by_tier), ordered)


def main() -> None:
    """Print the table, or with `--json` everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="operators too, for machines")
    as_json = parser.parse_args().json
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        coverage = measure(load_model_tests(kind="node"))
    if as_json:
        print(json.dumps(asdict(coverage), indent=2))
        return
    print(f"onnx {coverage.onnx_version}: {coverage.cases} node cases")
    for tier, count in coverage.by_tier.items():
        print(f"{tier:<28}{count:>6}{count / coverage.cases:>8.1%}")
    names = [f"{name} {count}" for name, count in coverage.reference_operators.items()]
    print(f"left to onnx.reference: {', '.join(names)}")


if __name__ == "__main__":
    main()
