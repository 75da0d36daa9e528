"""A driver for the tests of a module, and a client for each; also for `tests.scenarios.driver`."""

import pytest

from tests.driver.native_driver import driver


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with driver(tmp_path_factory.mktemp("driver")) as running:
        yield running


@pytest.fixture
def client(served):
    with served.client() as connected:
        yield connected
