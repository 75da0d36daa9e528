"""ONNX's node suite, which every operator of the standard is in, through our backend."""

import importlib.util
import string
import unittest
import warnings
from collections.abc import Mapping

import numpy as np
import pytest
from onnx.backend.test import BackendTest
from onnx.backend.test.case.test_case import TestCase

import tightship.backend
from tests.backend.comparison import IMPOSSIBLE, INCOMPARABLE, failure_of

PASSING_MIN = 1860
WITHOUT_REFERENCE_MIN = 1250
NODE_CASES = 1884
"""Number of cases in onnx 1.23."""

EXPECTED_FAILURES: dict[str, str] = {}
IMAGE_CASES = tuple(
    f"test_image_decoder_decode_{kind}"
    for kind in (
        "bmp_rgb",
        "jpeg2k_rgb",
        "jpeg_bgr",
        "jpeg_grayscale",
        "jpeg_rgb",
        "png_rgb",
        "pnm_rgb",
        "tiff_rgb",
        "webp_rgb",
    )
)
if importlib.util.find_spec("PIL") is None:
    EXPECTED_FAILURES |= dict.fromkeys(
        IMAGE_CASES, "decodes an image, for which `onnx.reference` needs Pillow"
    )


@pytest.mark.parametrize("initial", string.ascii_lowercase)
def test_operators_give_what_onnx_expects(initial: str, node_cases: Mapping[str, TestCase]) -> None:
    names = [name for name in node_cases if name.startswith(f"test_{initial}")]
    failures = {}
    for name in names:
        failure = failure_of(node_cases[name])
        if failure is not None:
            failures[name] = failure
    surprises = {name: why for name, why in failures.items() if name not in EXPECTED_FAILURES}
    passing = [name for name in names if name in EXPECTED_FAILURES and name not in failures]
    assert not surprises, "\n".join(f"{name}: {why}" for name, why in surprises.items())
    assert not passing, f"listed as failing, but they pass: {', '.join(passing)}"


def test_every_case_is_of_one_group_and_every_exception_is_a_case(
    node_cases: Mapping[str, TestCase],
) -> None:
    assert {name[len("test_")] for name in node_cases} <= set(string.ascii_lowercase)
    assert EXPECTED_FAILURES.keys() | IMPOSSIBLE <= node_cases.keys()


def test_enough_of_the_suite_passes(node_cases: Mapping[str, TestCase]) -> None:
    if len(node_cases) < NODE_CASES:
        pytest.skip(f"onnx is older than the one that has {NODE_CASES} cases")
    assert len(node_cases) - len(EXPECTED_FAILURES) - len(IMPOSSIBLE) >= PASSING_MIN


@pytest.mark.slow
def test_enough_of_the_suite_passes_without_onnx_reference(
    node_cases: Mapping[str, TestCase],
) -> None:
    if len(node_cases) < NODE_CASES:
        pytest.skip(f"onnx is older than the one that has {NODE_CASES} cases")
    failures = [failure_of(case, ("reference",)) for case in node_cases.values()]
    wrong = [why for why in failures if why is not None and "left out" not in why]
    assert failures.count(None) >= WITHOUT_REFERENCE_MIN
    assert len(wrong) <= len(EXPECTED_FAILURES), wrong


@pytest.mark.slow
def test_the_stock_runner_fails_only_what_no_backend_can_pass() -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        runner = BackendTest(tightship.backend, __name__)
    result = unittest.TestResult()
    suite = runner.test_cases["OnnxBackendNodeModelTest"]
    unittest.defaultTestLoader.loadTestsFromTestCase(suite).run(result)
    failed = {test._testMethodName for test, _ in (*result.failures, *result.errors)}
    possible = IMPOSSIBLE | EXPECTED_FAILURES.keys()
    assert failed - {f"{name}_cpu" for name in possible} == set()
    assert f"{next(iter(INCOMPARABLE))}_cpu" in failed
