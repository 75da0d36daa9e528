"""ONNX's node suite, made once a session."""

import warnings
from collections.abc import Mapping

import numpy as np
import pytest
from onnx.backend.test.case.test_case import TestCase


@pytest.fixture(scope="session")
def node_cases() -> Mapping[str, TestCase]:
    """Cases of the node suite by name; making them computes what is expected of each."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}
