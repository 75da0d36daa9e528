"""Programs of a prepared model by the shapes of their inputs."""

from pathlib import Path

import pytest

import tightship
from tests.small_models import dense
from tightship.engine.state.step_choices import StepChoices
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.shapes import StoredShapes, shown
from tightship.errors import InputError


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredShapes:
    """A model prepared for two batches."""
    path: Path = tmp_path_factory.mktemp("dense") / "dense.tship"
    tightship.prepare(dense()[0], path, shapes=[{"x": (2, 32)}, {"x": (4, 32)}])
    return StoredShapes(StoredModel(path), lambda _plan, _shapes: None)


def test_lengths_in_which_programs_differ_are_open(stored: StoredShapes) -> None:
    assert stored.open_lengths() == {"x": (True, False)}
    (shape,) = stored.output_shapes().values()
    assert shape is not None
    assert shape[0] is None


def test_other_shapes_are_refused_with_the_command(stored: StoredShapes) -> None:
    assert stored.admit([("x", (4, 32))])
    assert shown([("x", (4, 32))]) == "`x` [4, 32]"
    with pytest.raises(InputError, match=r"not for `x` \[8, 32\].* --shape x=8x32`"):
        stored.admit([("x", (8, 32))])


def test_a_file_without_graphs_or_sessions_says_what_to_do(stored: StoredShapes) -> None:
    with pytest.raises(InputError, match="which has no graph; load the ONNX file"):
        stored.source()
    with pytest.raises(InputError, match="has no programs for sessions of 64 tokens"):
        stored.stored_steps(StepChoices(64, 1, 8))
