"""ONNX's node suite by name."""

from collections.abc import Mapping

import pytest
from onnx.backend.test.case.test_case import TestCase

from tests.onnx_node_suite import node_tests


@pytest.fixture(scope="session")
def node_cases() -> Mapping[str, TestCase]:
    """Cases of the node suite by name."""
    return {case.name: case for case in node_tests()}
