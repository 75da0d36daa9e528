"""The real driver allows whatever the simulated one allows, so that tests with that one count."""

import pytest

from tests.native.driver_rules import answers
from tests.native.fake_cuda import FakeCuda
from tests.scenarios.gpu.driver import require_device

require_device()


@pytest.fixture
def simulated(tmp_path):
    return dict(answers(FakeCuda(tmp_path).path))


def test_what_the_simulated_driver_does_the_real_one_does_too(simulated):
    for name, results in answers("libcuda.so.1"):
        allowed = [index for index, result in enumerate(simulated[name]) if result == 0]
        assert [results[index] for index in allowed] == [0] * len(allowed), (name, results)
