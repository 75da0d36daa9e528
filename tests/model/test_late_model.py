"""A model whose own program is built when it is first wanted."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, decoder
from tightship.errors import InputError
from tightship.loading.kept import model as kept_model
from tightship.model import Model
from tightship.model.late_model import LateModel
from tightship.prepared_cache import identity


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.setenv("TIGHTSHIP_KEEP_PROGRAMS", "1")
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="Q4_0").written())
    tightship.load(path).session(32, chunk=8).step(IDS)
    return path


def inputs_of(model: Model) -> dict[str, np.ndarray]:
    return {
        name: np.ones(shape or (), dtype.numpy)
        for name, (dtype, shape) in model.input_types.items()
    }


def test_sessions_leave_the_own_program_alone(path: Path) -> None:
    with tightship.load(path) as model, tightship.load(path, keep_programs=False) as other:
        assert isinstance(model, LateModel)
        wanted = other.session(32, chunk=8).step(IDS)
        assert np.array_equal(model.session(32, chunk=8).step(IDS), wanted)
        assert list(model.known_output_shapes.items()) == list(other.known_output_shapes.items())
        assert model._programs is None
        assert model.plan.to_json() == other.plan.to_json()
        assert model._programs is not None
        assert (model.input_types, model.output_types) == (other.input_types, other.output_types)
        assert repr(model) == repr(other)
        own, others = (each.run(inputs_of(each)) for each in (model, other))
        assert all(np.array_equal(own[name], others[name]) for name in others)
        assert model.memory_stats() == other.memory_stats()
        packed = {id(copy) for copy in model.packed_weights}
        used = {id(copy) for copy in model.session(32, chunk=8)._programs.packed}
        assert packed <= used, "the weights are there once"


def test_a_model_that_was_closed_before_it_ran_has_its_plan(path: Path) -> None:
    with tightship.load(path, keep_programs=False) as other:
        wanted = other.plan.to_json(), other.input_names
    model = tightship.load(path)
    model.close()
    model.close()
    assert model.is_closed
    assert (model.plan.to_json(), model.input_names) == wanted
    assert repr(model) == "<tightship.Model m.gguf: closed>"
    for call in (lambda: model.session(32), lambda: model.run(inputs_of(model))):
        with pytest.raises(InputError, match=r"`m\.gguf` is closed; load it again to run it"):
            call()


def test_a_program_that_the_library_refuses_is_made_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise kept_model.FormatError("The library chooses another implementation here.")

    with tightship.load(path, keep_programs=False) as other:
        wanted = other.run(inputs_of(other))
    monkeypatch.setattr("tightship.engine.stored.kept.KeptProgram.compiled", refused)
    with tightship.load(path) as model:
        found = model.run(inputs_of(model))
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
