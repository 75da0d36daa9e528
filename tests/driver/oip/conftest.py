"""Fixtures of requests that are joined."""

import pytest

from tests.driver.oip.joining import Setting
from tightship.model import Model


@pytest.fixture
def setting(tmp_path):
    found = Setting(tmp_path)
    yield found
    found.close()


@pytest.fixture
def sizes(monkeypatch):
    """Rows of every run."""
    found, run = [], Model.run

    def counted(model, inputs, **options):
        found.append(len(inputs["x"]))
        return run(model, inputs, **options)

    monkeypatch.setattr(Model, "run", counted)
    return found
