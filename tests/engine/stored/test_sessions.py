"""Programs of sessions within a prepared model: found by choices, and refused if they are wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightship
from tests.engine.stored.files import Parts, changed_part, decoder_file, parts_of
from tightship.engine.state.step_choices import StepChoices
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.sessions import StoredSessions, choices_json
from tightship.errors import FormatError, InputError

CHOICES = StepChoices(16, 1, 4)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder with programs for sessions of 16 and 32 tokens, 4 at once."""
    return decoder_file(tmp_path_factory.mktemp("decoder"))


def sessions(path: Path) -> StoredSessions:
    return StoredSessions.of(StoredModel(path))


def test_descriptions_that_were_forgotten_are_read_again(file: Path) -> None:
    model = StoredModel(file)
    found = StoredSessions.of(model).steps(CHOICES).model
    for each in (model, found):
        wanted = each.plan(0), each.arenas(), each.output_shapes(0)
        each.forget()
        assert each._described is None
        assert (each.plan(0).tensors, each.arenas(), each.output_shapes(0)) == (
            wanted[0].tensors, *wanted[1:]
        )  # fmt: skip
    with tightship.load(file) as loaded:
        session = loaded.session(16, chunk=4)
        session.step([1, 2, 3, 4, 5])
        programs = session._programs
        assert programs.stored is not None
        assert programs.stored.model._described is None
        assert not programs.program(4).first_plan.tensors
        assert programs.arena_bytes() == max(
            programs.program(size).first_executable.arena_bytes for size in (4, 1)
        )


@pytest.mark.parametrize("chunk", [1, 4, 8])
def test_programs_are_found_by_all_choices_but_the_chunk(file: Path, chunk: int) -> None:
    found = sessions(file).steps(CHOICES._replace(chunk=chunk))
    assert found.sizes == (4, 2, 1)
    assert [len(found.model.keys), found.settings.threads] == [3, 1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"context": 64}, "of 64 tokens; it has those of 16 tokens; of 32 tokens. Prepare it with "
      "them, `tightship prepare .* --context 16,32,64`"),
     ({"cache": "int8"}, "of 16 tokens, caches of int8; .* --context 16,32 --cache int8"),
     ({"last": False}, "logits of all rows; .* Load the ONNX file with `share=True`"),
     ({"batch": 2}, "a batch of 2; .* --shape input_ids=1x1"),
     ({"state": (("a", "b"),)}, "caches by name"), ({"extra": (("x", (1, 2)),)}, r"`x` \[1, 2\]")],
)  # fmt: skip
def test_other_choices_are_refused_with_the_command(
    file: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        sessions(file).steps(CHOICES._replace(**changes))


def test_choices_are_read_as_they_were_written(file: Path) -> None:
    wanted = StepChoices(
        64, 2, 8, last=False, grows=False, state=(("a", "b"),), extra=(("x", (2, 3)),), cache="int8"
    )
    model = StoredModel(file)
    model.sessions = [(choices_json(wanted), 0, 0)]
    assert StoredSessions.of(model).choices == [wanted]


def test_the_plan_of_the_model_leaves_out_weights_of_sessions_alone(
    file: Path, tmp_path: Path
) -> None:
    alone = StoredModel(decoder_file(tmp_path, context=())).plan()
    assert StoredModel(file).plan().weights_bytes == alone.weights_bytes
    assert sessions(file).steps(CHOICES).model.weights_bytes > alone.weights_bytes


@pytest.mark.parametrize(
    "changes",
    [{"context": -1}, {"chunk": 2}, {"cache": "int4"}, {"batch": "1"}, {"last": 1}, {"more": 1},
     {"state": ["a"]}, {"extra": [["x", [-1]]]}],
)  # fmt: skip
def test_wrong_choices_are_refused(file: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    parts = parts_of(file.read_bytes())
    parts.text["sessions"][0][0].update(changes)
    path = tmp_path / "wrong.tship"
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match="damaged"):
        sessions(path).at(0)


def grow_cache(part: dict[str, Any]) -> None:
    part["steps"]["inputs"][-1][1] = [1, 4, None, 8]


@pytest.mark.parametrize(
    "change",
    [lambda part: part["steps"].update(sizes=[8, 2, 1]),
     lambda part: part["steps"]["types"].pop(),
     lambda part: part["programs"].pop(),
     lambda part: part.update(threads=2),
     lambda part: part.update(version="0"),
     lambda part: part.update(library={"cpu_isa": "other"}),
     lambda part: part.update(sessions=[[{"context": 16}, 0, 2]]),
     lambda part: part["weights"].append(["w", 1 << 40, 64, 0]),
     grow_cache],
)  # fmt: skip
def test_wrong_programs_of_sessions_are_refused_before_a_session_opens(
    file: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    parts = changed_part(parts_of(file.read_bytes()), 0, change)
    path = tmp_path / "wrong.tship"
    path.write_bytes(parts.assembled())
    with tightship.load(path) as model:
        with pytest.raises(FormatError, match="damaged"):
            model.session(16, chunk=4)
        assert model.session(32, chunk=4).step(np.zeros((1, 3), np.int64)).shape == (1, 1, 50)


def test_a_place_outside_the_recipes_is_refused(file: Path, tmp_path: Path) -> None:
    parts: Parts = parts_of(file.read_bytes())
    parts.text["sessions"][0][2] = len(parts.recipes) + 1
    path = tmp_path / "wrong.tship"
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match="outside"):
        sessions(path).at(0)


def test_weights_of_sessions_are_verified(file: Path, tmp_path: Path) -> None:
    StoredModel(file).verify()
    parts = parts_of(file.read_bytes())
    weights = bytearray(parts.weights)
    weights[-4096] ^= 1  # the last page has the weights of the last program alone
    parts.weights = bytes(weights)
    path = tmp_path / "wrong.tship"
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match="does not match its checksum"):
        StoredModel(path).verify()


def test_the_command_that_makes_the_file_again_has_its_sessions(file: Path) -> None:
    model = StoredModel(file)
    assert model.command(()).endswith("decoder.tship --context 16,32")
    assert model.command((), contexts=(8,), cache="int8").endswith(" --context 8 --cache int8")
