"""`load(model, share=True)` at lengths other than the first: still one copy of the weights."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import tightship
from tests.loading.lengths_process import FIRST, OTHERS
from tests.processor import HAS_AVX512
from tests.zoo.exports import EXPORTS, VOCABULARY, export
from tests.zoo.net import Net
from tests.zoo.open_lengths import opened
from tightship.engine.compile.compile_graph import prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.loading import model_specializer
from tightship.prepared_cache import clear, entries
from tightship.resource import SharedArenaPool

GROWTH_BYTES_MAX = 2 << 20
"""Growth of a process that shares, beyond that of programs for the same lengths without it."""
PRIVATE_BYTES_GROWN_MAX = 2 << 20
"""Growth by five lengths of a process that shares: a program, templates, and their evaluation."""
MORE_BYTES_MAX = 3 << 19
"""Growth by ten more lengths: nothing but holes in the heap."""
ACCOUNTED_TIMES_MAX = 2 if HAS_AVX512 else 8
"""Accounted over released bytes of programs: the account takes each step for one of oneDNN's."""
PRIVATE_BYTES_MAX = 256 << 10
"""Private bytes of weights; these are tables that depend on lengths."""


def feeds(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(shape[1])
    return {"ids": random.integers(0, VOCABULARY, shape), "mask": np.ones(shape, np.int64)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models."""
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    return tmp_path / "prepared"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(export("roberta"))
    return path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", EXPORTS)
def test_weights_are_shared_at_every_length(name: str, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(export(name))
    shapes = {"ids": FIRST, "mask": FIRST}
    with (
        tightship.load(model, shapes=shapes) as alone,
        tightship.load(model, shapes=shapes, share=True) as shared,
    ):
        held = alone.memory_stats().weights_bytes
        assert held > 16 * PRIVATE_BYTES_MAX
        for shape in OTHERS:
            wanted, found = (each.run(feeds(shape)) for each in (alone, shared))
            for output, array in wanted.items():
                np.testing.assert_allclose(found[output], array, rtol=1e-4, atol=1e-5)
            assert shared.memory_stats().weights_bytes <= PRIVATE_BYTES_MAX
            assert alone.memory_stats().weights_bytes <= held + PRIVATE_BYTES_MAX


SOME = {"roberta", "llama"}
GROWING = [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in EXPORTS]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", GROWING)
def test_a_process_grows_by_a_program_and_templates_alone(name: str, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(export(name))
    for _ in range(2):  # the first prepares it
        with start(model, "shared") as process:
            said = json.loads(process.communicate()[0])
        assert said["own"] <= PRIVATE_BYTES_MAX
        assert said["grown"] <= PRIVATE_BYTES_GROWN_MAX
        assert said["more"] <= MORE_BYTES_MAX
        assert said["released"] / 2 <= said["accounted"]
        assert said["accounted"] <= ACCOUNTED_TIMES_MAX * said["released"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("first", [1, 4])
def test_convolutions_share_their_weights_at_every_batch(
    first: int, taps: int, tmp_path: Path
) -> None:
    net = Net()
    x = net.normal("x", 1, 128, 7, 7)
    for _ in range(4):
        weight = net.weight(128, 128, taps, taps)
        x = net("Relu", net("Conv", x, weight, pads=[taps // 2] * 4))
    net.output(x)
    model = tmp_path / "model.onnx"
    model.write_bytes(opened(net, {"x": ("batch", 128, 7, 7)}))
    images = np.random.default_rng(0).standard_normal((16, 128, 7, 7), np.float32)
    with tightship.load(model, shapes={"x": (first, 128, 7, 7)}, share=True) as loaded:
        wanted = loaded(images[:first])
        for count in (2, 1, 4, 16):
            found = loaded(images[:count])
            least = min(count, first)
            np.testing.assert_allclose(found[:least], wanted[:least], rtol=1e-3, atol=1e-4)
            assert loaded.memory_stats().weights_bytes <= PRIVATE_BYTES_MAX


def with_external_data(model: Path) -> Path:
    """The same with its weights in a file beside it."""
    path = model.with_name("external.onnx")
    onnx.save_model(onnx.load(model), path, save_as_external_data=True, location="weights")
    return path


def check_lengths(source: Path | bytes, **options: object) -> None:
    shapes = {"ids": FIRST, "mask": FIRST}
    with tightship.load(source, shapes=shapes, share=True, **options) as loaded:
        for shape in (*OTHERS, FIRST):
            loaded.run(feeds(shape))
            assert loaded.memory_stats().weights_bytes <= PRIVATE_BYTES_MAX


@pytest.mark.usefixtures("folder")
def test_weights_are_shared_however_a_model_is_given(model: Path) -> None:
    check_lengths(model.read_bytes())
    check_lengths(with_external_data(model))
    check_lengths(model, threads=2)


@pytest.mark.usefixtures("folder")
def test_weights_are_shared_by_a_model_that_shares_its_arenas(model: Path, tmp_path: Path) -> None:
    (tmp_path / "arenas").mkdir(mode=0o700)
    with SharedArenaPool(slots=1, folder=tmp_path / "arenas") as pool:
        check_lengths(model, arena_pool=pool)


def test_weights_stay_shared_when_the_folder_is_cleared(folder: Path, model: Path) -> None:
    with tightship.load(model, shapes={"ids": FIRST, "mask": FIRST}, share=True) as loaded:
        clear(folder)
        for shape in OTHERS:
            loaded.run(feeds(shape))
        assert loaded.memory_stats().weights_bytes <= PRIVATE_BYTES_MAX


def with_table(tmp_path: Path) -> Path:
    """A model that adds as many rows of a table as `x` of [rows, 512] has."""
    net = Net()
    net.normal("x", 1, 512)
    rows = net("Shape", "x", end=1)
    table = net("Slice", net.weight(2048, 512), net.ints(0), rows, net.ints(0))
    net.output(net("Add", "x", table))
    path = tmp_path / "table.onnx"
    path.write_bytes(opened(net, {"x": ("rows", 512)}))
    return path


def test_weights_of_one_process_are_counted_once(folder: Path, tmp_path: Path) -> None:
    path = with_table(tmp_path)
    with tightship.load(path, shapes={"x": (8, 512)}, share=True) as model:
        for _ in range(2):  # one that comes again stays
            model(np.zeros((900, 512), np.float32))
        told = r"`table.onnx` has 4.44 MiB .* since it ran with `x` \[1372, 512\]: 4.44 MiB are not"
        with pytest.warns(RuntimeWarning, match=told) as said:
            model(np.zeros((1372, 512), np.float32))
        assert [warning.filename for warning in said] == [__file__]
        for rows in (2000, 1900, 8):
            assert model(np.zeros((rows, 512), np.float32)).shape == (rows, 512)
    assert len(entries(folder)) == 1


def test_a_warning_that_is_an_error_leaves_the_model_usable(folder: Path, tmp_path: Path) -> None:
    x = np.zeros((2000, 512), np.float32)
    with tightship.load(with_table(tmp_path), shapes={"x": (8, 512)}, share=True) as model:
        with pytest.raises(RuntimeWarning, match="for this process alone since"):
            model(x)
        assert model(x).shape == x.shape
        assert model.programs.held == 2
        assert model.release_unused_memory() > 0
    assert folder.exists()


@pytest.mark.usefixtures("folder")
def test_the_warning_says_which_weights_lie_otherwise(model: Path) -> None:
    with tightship.load(model, shapes={"ids": FIRST, "mask": FIRST}, share=True) as loaded:
        loaded.run(feeds((1, 3)))
        further = loaded._variants
        (known, *_) = further._known.copies_held()
        moved = known.weight._replace(size_bytes=3 << 20, desc=None)
        key = (("ids", (1, 3)),)
        said = further.unshared(key, [moved])
        assert "`ids` [1, 3]: 3.00 MiB are wanted in another layout" in said
        assert further.unshared(key, [moved]) is None


def test_a_file_that_is_lowered_otherwise_shares_nothing_and_says_so(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = {"ids": FIRST, "mask": FIRST}
    with tightship.load(model, shapes=shapes, share=True) as loaded:
        monkeypatch.setattr(model_specializer, "prepare", prepare_without_the_first)
        with pytest.warns(RuntimeWarning, match="MiB cannot be told from those that were stored"):
            loaded.run(feeds((1, 3)))
    assert folder.exists()


def prepare_without_the_first(*arguments: object) -> CompiledModel:
    """Prepare as `prepare` does, without the first weight."""
    prepared = prepare(*arguments)
    lowered = prepared.placement.lowered._replace(weights=prepared.placement.lowered.weights[1:])
    return prepared._replace(placement=prepared.placement._replace(lowered=lowered))


def start(model: Path, how: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-W", "error", "-m", "tests.loading.lengths_process"]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, model, how, "ids", "mask"], stdin=pipe, stdout=pipe)


@pytest.mark.usefixtures("folder")
def test_processes_that_start_together_grow_by_no_weights(model: Path) -> None:
    group = [start(model, how) for how in ("shared", "shared", "alone")]
    said = [json.loads(process.stdout.readline()) for process in group]
    for process in group:
        process.communicate()
    *shared, alone = said
    assert alone["own"] > 20 * PRIVATE_BYTES_MAX
    for each in shared:
        assert each["own"] < PRIVATE_BYTES_MAX
        assert each["grown"] < alone["grown"] + GROWTH_BYTES_MAX
