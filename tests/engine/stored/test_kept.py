"""A program without its weights in a file."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engine.stored.files import parts_of
from tests.small_models import dense
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.kept import KeptProgram
from tightship.engine.stored.recipes import recording
from tightship.engine.stored.save import save_kept
from tightship.errors import FormatError
from tightship.loading.opening import read_graph


def compiled_model() -> CompiledModel:
    open_library()
    with recording():
        return prepare(read_graph(dense(4)[0], Settings()), "dense", Settings())


def test_a_kept_program_is_the_one_that_was_lowered(tmp_path: Path) -> None:
    compiled, path = compiled_model(), tmp_path / "program"
    weights = compiled.placement.lowered.weights
    save_kept(path, compiled, Compatibility.here(1, ()), ["said"])
    assert not parts_of(path.read_bytes()).weights
    asked: list[object] = []

    def given(about: object) -> Sequence[PackedWeight]:
        asked.append(about)
        return weights

    kept = KeptProgram(path, given)
    found = kept.compiled()
    assert (asked, kept.about) == ([["said"]], ["said"])
    assert found.plan.to_json() == compiled.plan.to_json()
    assert found.placement.lowered.weights == weights
    offsets, others = (each.placement.schedule_plan.plan.offset_bytes for each in (found, compiled))
    assert offsets.tolist() == others.tolist()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    def refused(_about: object) -> Sequence[PackedWeight]:
        raise MalformedError("they are elsewhere")

    compiled, path = compiled_model(), tmp_path / "program"
    save_kept(path, compiled, Compatibility.here(1, ()), None)
    with pytest.raises(FormatError, match="they are elsewhere"):
        _ = KeptProgram(path, refused).weights
    with pytest.raises(FormatError):
        KeptProgram(path, lambda _: []).compiled()
    save_kept(path, compiled, Compatibility("0.0", {}, 1, ()), None)
    with pytest.raises(FormatError, match="it is for another environment"):
        KeptProgram(path, lambda _: compiled.placement.lowered.weights)
