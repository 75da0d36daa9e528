"""The seed of PyTorch's random numbers, the same before every test."""

import pytest


@pytest.fixture(autouse=True)
def seed() -> None:
    pytest.importorskip("torch").manual_seed(0)
