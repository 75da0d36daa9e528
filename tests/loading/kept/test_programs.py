"""Programs of GGUF files are kept for later processes, and change nothing but the time."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, decoder
from tests.frontend.gguf.test_shards import split
from tests.text.vocabularies import chat_fields
from tightship.errors import CapacityError, InputError
from tightship.loading.kept import programs
from tightship.prepared_cache import UnusableCacheError, entries, identity
from tightship.prepared_cache.lock import locked

READER = """
import json, sys
import tightship
from tightship.prepared_cache import identity
identity.SETTLED_NS = -10**18
with tightship.load(sys.argv[1]) as model:
    session = model.session(32, chunk=8)
    logits = session.step(json.loads(sys.argv[2]))
    text = model.session(32, chunk=8).generate("the in", temperature=0, max_tokens=8).text()
names = (
    "onnx", "tightship.engine.lower.selection", "tightship.frontend.onnx", "tightship.graph.ir",
    "tightship.deprecated", "tightship.engine.state.stored_caches",
)
imported = [name for name in names if name in sys.modules]
own = [module for name, module in sys.modules.items() if name.startswith("tightship.")]
made = {each for module in own for each in vars(module).values()
        if isinstance(each, type) and "__dataclass_fields__" in vars(each)}
print(json.dumps([logits.tolist(), text, imported, len(own), len(made)]))
"""
MODULES_MAX, DATACLASSES_MAX = 160, 55
"""Modules that a process imports of the package until it has text, and the dataclasses in them.

Each takes some tenths of a millisecond to make, so that both may only become fewer.
"""


def model_file(folder: Path, type_: str = "Q4_1", **options: Any) -> Path:
    path = folder / "m.gguf"
    path.write_bytes(decoder(type_=type_, layers=2, **options).written(chat_fields()))
    return path


def logits(path: Path, context: int = 32, **options: Any) -> np.ndarray:
    with tightship.load(path, **options) as model:
        return model.session(context, chunk=8).step(IDS)


def times(folder: Path) -> dict[str, int]:
    """Return when the file of each entry was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("*/model.tship")}


@pytest.mark.parametrize("type_", ["Q4_0", "Q4_1", "Q8_0", "F16"])
def test_another_process_runs_the_same_program_without_the_graph(
    type_: str, tmp_path: Path, folder: Path
) -> None:
    path = model_file(tmp_path, type_)
    wanted = logits(path, keep_programs=False)
    assert not folder.exists()
    assert np.array_equal(logits(path), wanted)
    assert len(entries(folder)) == 3, "the model's own program, and those of 8 tokens and one"
    assert sum(entry.size_bytes for entry in entries(folder)) < 1 << 20
    with tightship.load(path) as model:
        text = model.session(32, chunk=8).generate("the in", temperature=0, max_tokens=8).text()
    done = subprocess.run(
        [sys.executable, "-c", READER, path, json.dumps(IDS)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found, said, imported, modules, dataclasses = json.loads(done.stdout)
    assert imported == []
    assert modules <= MODULES_MAX
    assert dataclasses <= DATACLASSES_MAX
    assert np.array_equal(np.float32(found), wanted)
    assert said == text


@pytest.mark.usefixtures("folder")
def test_a_short_prompt_leaves_other_programs_alone(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    with tightship.load(path, keep_programs=False) as model:
        session = model.session(32, chunk=8)
        wanted = [session.step(IDS[:2]), session.step(IDS)]
    for _ in range(2):
        with tightship.load(path) as model:
            session = model.session(32, chunk=8)
            found = [session.step(IDS[:2])]
            assert list(session._programs._programs) == [2]
            fork = session.fork()
            found.append(session.step(IDS))
            assert session._programs.count == 3
            assert all(map(np.array_equal, found, wanted))
            assert np.array_equal(fork.step(IDS), wanted[1])


def test_a_kept_program_has_the_plan_that_it_was_lowered_with(tmp_path: Path, folder: Path) -> None:
    path = model_file(tmp_path)
    found = []
    for options in ({"keep_programs": False}, {}, {}):
        with tightship.load(path, max_memory="1GiB", **options) as model:
            session = model.session(32, chunk=8)
            planned = session._programs.planned_bytes()
            plans = [model.plan, *(session._programs.program(n).first_plan for n in (8, 1))]
            found.append([planned, *(plan.to_json() for plan in plans)])
    assert found[0] == found[1] == found[2]
    assert len(entries(folder)) == 3


@pytest.mark.usefixtures("folder")
def test_a_program_that_is_not_kept_is_made_over_the_same_weights(tmp_path: Path) -> None:
    path = model_file(tmp_path, "Q4_0")
    logits(path)
    with tightship.load(path) as model:
        session = model.session(16, chunk=4)
        session.step(IDS)
        weights = [copy.weight for copy in session._programs.packed]
    large = [each.name for each in weights if each.size_bytes > 512]
    assert len(large) == len(set(large)) > 10, "no matrix is packed twice"


@pytest.mark.usefixtures("folder")
def test_a_file_that_takes_the_place_of_another_is_read(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    first = logits(path)
    other = tmp_path / "other.gguf"
    other.write_bytes(decoder(type_="Q4_1", layers=2, is_tied=False).written(chat_fields()))
    wanted = logits(other, keep_programs=False)
    with tightship.load(path) as model:
        other.replace(path)
        assert np.array_equal(model.session(32, chunk=8).step(IDS), first)
        with pytest.raises(InputError, match="has changed since it was loaded; load it again"):
            model.session(24, chunk=8)
    assert np.array_equal(logits(path), wanted)


def test_a_file_that_changed_just_now_is_not_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 10**12)
    logits(model_file(tmp_path))
    assert not folder.exists()


@pytest.mark.parametrize("cut", [0, 100, 5000, -1])
def test_a_damaged_entry_is_made_again(cut: int, tmp_path: Path, folder: Path) -> None:
    path = model_file(tmp_path)
    wanted = logits(path)
    for file in folder.glob("*/model.tship"):
        whole = file.read_bytes()
        file.write_bytes(whole[:cut] if cut >= 0 else whole[:-9] + bytes(9))
    assert np.array_equal(logits(path), wanted)
    before = times(folder)
    assert np.array_equal(logits(path), wanted)
    assert times(folder) == before
    assert len(before) == 3


def _others_write(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def _is_a_file(folder: Path) -> None:
    folder.write_bytes(b"")


def _belongs_to_another(folder: Path) -> None:
    if os.geteuid():
        pytest.skip("only root gives folders away")
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)


@pytest.mark.parametrize("make", [_others_write, _is_a_file, _belongs_to_another])
def test_a_folder_that_cannot_be_used_changes_nothing(
    make: Callable[[Path], None], tmp_path: Path, folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = model_file(tmp_path)
    wanted = logits(path, keep_programs=False)
    make(folder)
    assert np.array_equal(logits(path), wanted)
    assert not folder.is_dir() or not list(folder.iterdir())
    assert not recwarn.list


def test_an_entry_that_others_may_have_written_is_not_read(tmp_path: Path, folder: Path) -> None:
    path = model_file(tmp_path)
    wanted = logits(path)
    for file in folder.glob("*/model.tship"):
        file.chmod(0o666)
        file.write_bytes(b"hostile")
    assert np.array_equal(logits(path), wanted)


def test_without_a_home_or_room_nothing_is_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_file(tmp_path)

    def homeless() -> Path:
        raise UnusableCacheError("This user has no home folder.")

    with monkeypatch.context() as patch:
        patch.setattr(programs, "cache_folder", homeless)
        wanted = logits(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tightship.engine.stored.save.save_kept", full)
        assert np.array_equal(logits(path), wanted)
    assert not list(folder.glob("*/model.tship"))
    assert not list(folder.glob("*/draft*"))


def test_a_process_does_not_wait_for_one_that_writes(tmp_path: Path, folder: Path) -> None:
    path = model_file(tmp_path)
    wanted = logits(path)
    files = list(folder.glob("*/model.tship"))
    for file in files:
        file.unlink()
    held = [locked(file.with_name("lock")) for file in files]
    for each in held:
        each.__enter__()
    assert np.array_equal(logits(path), wanted)
    assert not list(folder.glob("*/model.tship"))
    for each in held:
        each.__exit__(None, None, None)
    logits(path)
    assert len(list(folder.glob("*/model.tship"))) == 3


def test_choices_of_the_user_have_entries_of_their_own(tmp_path: Path, folder: Path) -> None:
    path = model_file(tmp_path)
    logits(path)
    logits(path, 24)
    assert len(entries(folder)) == 5
    logits(path, threads=2)
    assert len(entries(folder)) == 8
    wanted = logits(path, activations="int8", keep_programs=False)
    for _ in range(2):
        assert np.array_equal(logits(path, activations="int8"), wanted)
    assert len(entries(folder)) == 11


def test_shards_are_known_by_their_facts(tmp_path: Path, folder: Path) -> None:
    path = split(decoder(type_="Q4_1"), tmp_path)
    wanted = logits(path)
    before = times(folder)
    assert np.array_equal(logits(path), wanted)
    assert times(folder) == before
    for number in (2, 3):
        os.utime(path.with_name(f"m-{number:05}-of-00003.gguf"))
    assert np.array_equal(logits(path), wanted)
    after = times(folder)
    assert after.keys() == before.keys()
    assert all(after[key] > before[key] for key in before)
    path.with_name("m-00003-of-00003.gguf").unlink()
    with pytest.raises(InputError, match=r"`.*m-00003-of-00003.gguf` does not exist"):
        logits(path)


@pytest.mark.usefixtures("folder")
def test_a_limit_is_refused_as_without_kept_programs(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    logits(path)
    found = []
    for keep_programs in (False, True):
        with pytest.raises(CapacityError) as refused:
            tightship.load(path, max_memory="1MiB", keep_programs=keep_programs)
        found.append(str(refused.value))
    assert found[0] == found[1]


def test_weights_in_layouts_of_the_library_are_not_kept(tmp_path: Path, folder: Path) -> None:
    path = model_file(tmp_path, "F32")
    wanted = logits(path, keep_programs=False)
    for _ in range(2):
        assert np.array_equal(logits(path), wanted)
    assert [file.stat().st_size for file in folder.glob("*/model.tship")] == [0], "a note of it"


def test_the_environment_leaves_programs_out(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_file(tmp_path)
    monkeypatch.setenv("TIGHTSHIP_KEEP_PROGRAMS", "0")
    logits(path)
    assert not folder.exists()
    monkeypatch.setenv("TIGHTSHIP_KEEP_PROGRAMS", "yes")
    with pytest.raises(InputError, match="TIGHTSHIP_KEEP_PROGRAMS is `yes`; it must be 0 or 1"):
        logits(path)
