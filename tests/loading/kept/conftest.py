"""Programs of these tests are made in their own process, where settings are replaced."""

import pytest

from tightship.loading import reading_process


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_process, "_start", lambda: None)
