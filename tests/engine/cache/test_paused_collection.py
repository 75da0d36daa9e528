"""The collector of cycles pauses within a block, and goes on as it was."""

import gc

import pytest

from tightship.engine.cache.paused_collection import paused_collection


def test_the_collector_pauses() -> None:
    assert gc.isenabled()
    with paused_collection(), paused_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_errors_let_it_go_on() -> None:
    with pytest.raises(ValueError, match="no"), paused_collection():
        raise ValueError("no")
    assert gc.isenabled()


def test_a_program_without_a_collector_stays_so() -> None:
    gc.disable()
    try:
        with paused_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
