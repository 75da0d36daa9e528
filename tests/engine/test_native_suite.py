"""The native tier against ONNX's backend suite."""

from collections import Counter

import pytest

from tests.engine.kernels.node_suite import Case, assert_close, cases
from tests.engine.native_tier import lowered_natively, run_natively
from tightship.graph.operators import named


def covered() -> list[Case]:
    return [
        case
        for case in cases()
        if case.is_numeric
        and not case.node.domain
        and case.node.operator in named("native")
        and lowered_natively(case.node, case.inputs, case.outputs) is not None
    ]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_suites_results_come_out_of_every_native_kernel(threads: int):
    wrong = []
    for case in covered():
        try:
            results = run_natively(case.node, case.inputs, case.outputs, threads)
            assert results is not None
            assert_close(results, case.outputs)
        except AssertionError as error:
            wrong.append(f"{case.name}: {error}")
    assert not wrong, "\n".join(wrong)


def test_each_emitter_covers_some_model_of_the_suite():
    found = Counter((case.node.domain, case.node.operator) for case in covered())
    with_bodies = {("", name) for name in ("If", "Loop", "Scan")}  # see test_control.py
    assert {("", name) for name in named("native")} - set(found) == with_bodies
