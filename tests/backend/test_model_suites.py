"""ONNX's stock runner, over the models that the onnx package brings along."""

import unittest
import warnings

import numpy as np
import pytest
from onnx.backend.test import BackendTest

import tightship.backend

CASES_MIN = {
    "OnnxBackendSimpleModelTest": 21,
    "OnnxBackendPyTorchConvertedModelTest": 82,
    "OnnxBackendPyTorchOperatorModelTest": 35,
}

NOT_COMPATIBLE = {
    "test_gradient_of_add_cpu": "Gradient of the preview domain has no kernel",
    "test_gradient_of_add_and_mul_cpu": "Gradient of the preview domain has no kernel",
}


@pytest.fixture(scope="module")
def runner() -> BackendTest:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return BackendTest(tightship.backend, __name__)


@pytest.mark.parametrize("suite", sorted(CASES_MIN))
def test_the_stock_runner_finds_nothing_wrong(suite: str, runner: BackendTest) -> None:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(runner.test_cases[suite]).run(result)
    skipped = {test._testMethodName for test, _ in result.skipped}
    skipped_on_cpu = {name for name in skipped if name.endswith("_cpu")}
    assert not result.failures + result.errors, result.failures + result.errors
    assert skipped_on_cpu <= NOT_COMPATIBLE.keys()
    assert result.testsRun - len(skipped) >= CASES_MIN[suite]


def test_what_is_listed_as_not_compatible_is_not(runner: BackendTest) -> None:
    result = unittest.TestResult()
    suite = runner.test_cases["OnnxBackendSimpleModelTest"]
    for name in NOT_COMPATIBLE:
        suite(name).run(result)
    assert len(result.skipped) == len(NOT_COMPATIBLE)
