"""Prepared models: written once, then loaded without the ONNX file, results to the last bit."""

import gc
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import tightship
from tests.engine.stored.files import dense_file, parts_of
from tests.models import conv_net
from tests.small_models import dense, model, nonzero
from tightship._core import kernel_cpu
from tightship.cli.main import main
from tightship.errors import CapacityError, FormatError, InputError
from tightship.loading.restoring import verify_prepared

SHAPES = {"x": (4, 32)}


def written(folder: Path, source: bytes | Path, **options: object) -> Path:
    path = folder / "model.tship"
    tightship.prepare(source, path, **options)
    return path


@pytest.mark.parametrize("source", [conv_net().SerializeToString(), dense(4)[0]])
def test_a_prepared_model_gives_the_bits_that_its_onnx_file_gives(
    source: bytes, tmp_path: Path
) -> None:
    with tightship.load(source) as plain, tightship.load(written(tmp_path, source)) as prepared:
        feeds = {
            name: np.random.default_rng(0).standard_normal(shape).astype(dtype.numpy)
            for name, (dtype, shape) in plain.input_types.items()
        }
        wanted, found = plain.run(feeds), prepared.run(feeds)
        assert plain.plan.arena_bytes == prepared.plan.arena_bytes
    assert {n: a.tobytes() for n, a in wanted.items()} == {n: a.tobytes() for n, a in found.items()}


def test_a_normalization_without_a_shift_is_prepared(tmp_path: Path) -> None:
    nodes = [helper.make_node("LayerNormalization", ["x", "scale"], ["y"])]
    value = ("x", TensorProto.FLOAT, [40, 512]), ("y", TensorProto.FLOAT, [40, 512])
    scale = np.arange(512, dtype=np.float32)
    source = model(nodes, [value[0]], [value[1]], {"scale": scale})
    x = np.random.default_rng(2).standard_normal((40, 512), np.float32)
    with tightship.load(source) as plain, tightship.load(written(tmp_path, source)) as prepared:
        assert np.array_equal(prepared(x), plain(x))


def test_one_file_has_programs_for_several_shapes_over_one_copy_of_the_weights(
    tmp_path: Path,
) -> None:
    source, _ = dense()
    one = written(tmp_path, source, shapes=SHAPES).stat().st_size
    several = written(tmp_path, source, shapes=[{"x": (n, 32)} for n in (4, 7, 1)])
    assert several.stat().st_size < one + (32 * 64 * 4)
    with tightship.load(several) as prepared, tightship.load(source, shapes=SHAPES) as plain:
        for rows in (1, 4, 7, 1, 7):  # those that come again stay
            x = np.random.default_rng(rows).standard_normal((rows, 32)).astype(np.float32)
            np.testing.assert_allclose(prepared(x), plain(x), rtol=1e-5, atol=1e-5)
        assert prepared.programs.held == 3
        with pytest.raises(InputError, match=r"prepared for `x` \[4, 32\]; or `x` \[7, 32\]"):
            prepared(np.zeros((5, 32), np.float32))


@pytest.mark.parametrize("rows", [(4, 7), range(4, 24)], ids=["few", "many"])
def test_lengths_not_prepared_are_refused_with_those_that_are_and_the_remedy(
    rows: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, _ = dense()
    onnx_file = tmp_path / "model.onnx"
    onnx_file.write_bytes(source)
    path = written(tmp_path, onnx_file, shapes=[{"x": (n, 32)} for n in rows])
    listed = pytest.raises(InputError, match=r"prepared for `x` \[4, 32\]; or .*; not for")
    with tightship.load(path) as prepared, listed as one:
        prepared(np.zeros((3, 32), np.float32))
    with pytest.raises(InputError, match=r"not for `x` \[3, 32\]. Prepare it for") as other:
        tightship.load(path, shapes={"x": (3, 32)})
    with pytest.raises(InputError, match=r"not for `x` \[3, 32\]. Prepare it for"):
        tightship.plan(path, shapes={"x": (3, 32)})
    assert len(str(one.value)) < 1500
    command = str(other.value).split("`")[-4]
    assert command.startswith("tightship prepare")
    assert command.endswith("--shape x=3x32")
    if len(rows) == 2:
        monkeypatch.chdir(tmp_path)
        assert main(shlex.split(command)[1:]) == 0
        with tightship.load(path) as again:
            assert again(np.zeros((3, 32), np.float32)).shape[0] == 3


def test_a_plan_is_in_the_file(tmp_path: Path) -> None:
    source, _ = dense()
    path = written(tmp_path, source, shapes=SHAPES)
    plan, plain = tightship.plan(path), tightship.plan(source, shapes=SHAPES)
    assert plan.strategies == plain.strategies
    assert plan.tensors == plain.tensors
    assert [(s.name, s.implementation) for s in plan.steps] == [
        (s.name, s.implementation) for s in plain.steps
    ]
    assert plan.peak_bytes < plain.peak_bytes


def test_running_a_prepared_model_imports_no_onnx(tmp_path: Path) -> None:
    source, _ = dense()
    path = written(tmp_path, source, shapes=SHAPES)
    code = (
        "import sys, numpy, tightship\n"
        "model = tightship.load(sys.argv[1])\n"
        "model(numpy.zeros((4, 32), numpy.float32))\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('onnx', 'google')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_step_outside_the_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Load the ONNX file instead"):
        written(tmp_path, nonzero())
    assert list(tmp_path.iterdir()) == []


def test_a_limit_refuses_before_anything_is_loaded(tmp_path: Path) -> None:
    path = written(tmp_path, dense()[0], shapes=SHAPES)
    with pytest.raises(CapacityError):
        tightship.load(path, max_memory="1MiB")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"threads": 2}, "prepared for 1 thread.*2 asked for.*--threads 2`"),
        ({"without": ["in_place"]}, "left out: none.*left out: in_place.*--without in_place`"),
    ],
)
def test_a_file_for_something_else_is_refused_with_the_command_that_remakes_it(
    asked: dict[str, object], reason: str, tmp_path: Path
) -> None:
    path = written(tmp_path, dense()[0], shapes=SHAPES)
    with pytest.raises(FormatError, match=reason):
        tightship.load(path, **asked)


def test_a_closed_model_has_its_file_mapped_no_longer(tmp_path: Path) -> None:
    path = written(tmp_path, dense(4)[0])
    model = tightship.load(path)
    assert str(path) in Path("/proc/self/maps").read_text()
    model.close()
    gc.collect()
    assert str(path) not in Path("/proc/self/maps").read_text()
    with pytest.raises(InputError, match="is closed"):
        model.run({})


@pytest.mark.parametrize("source", [dense(4)[0], None])
def test_no_threads_are_refused(source: bytes | None, tmp_path: Path) -> None:
    with pytest.raises((InputError, FormatError), match="0"):
        tightship.load(source or written(tmp_path, dense(4)[0]), threads=0)


def test_two_that_prepare_the_same_file_leave_one_that_is_whole(tmp_path: Path) -> None:
    source, path = tmp_path / "dense.onnx", tmp_path / "dense.tship"
    source.write_bytes(dense(4)[0])
    code = "import sys, tightship\ntightship.prepare(sys.argv[1], sys.argv[2])"
    both = [subprocess.Popen([sys.executable, "-c", code, source, path]) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    assert sorted(tmp_path.iterdir()) == [source, path]
    assert verify_prepared(path) > 0


def test_a_model_keeps_the_file_that_it_was_loaded_from(tmp_path: Path) -> None:
    path = written(tmp_path, dense(4)[0])
    x = np.ones((4, 32), np.float32)
    with tightship.load(path) as model:
        before = model(x)
        written(tmp_path, dense(4, hidden=128)[0])
        assert model(x).tobytes() == before.tobytes()
    path.unlink()


def test_threads_run_a_prepared_model_at_once_and_it_is_profiled(tmp_path: Path) -> None:
    x = np.ones((4, 32), np.float32)
    with tightship.load(written(tmp_path, dense(4)[0])) as model:
        wanted = model(x).tobytes()
        with ThreadPoolExecutor(4) as pool:
            results = pool.map(lambda _: model(x).tobytes(), range(40))
            assert set(results) == {wanted}
        assert model.profile({"x": x}, repeat=2).to_json()


@pytest.mark.parametrize("made", [{"library": {"onednn": "9.9"}}, {"version": "0.0.1"}])
def test_a_file_of_another_library_or_version_is_refused(
    made: dict[str, object], tmp_path: Path
) -> None:
    path = dense_file(tmp_path)
    parts = parts_of(path.read_bytes())
    parts.text |= made
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match=r"was prepared for .*9\.9|Tightship 0\.0\.1"):
        tightship.load(path)


def sums() -> bytes:
    """A model that our own kernels run: integers added."""
    ends = [(name, TensorProto.INT64, [4]) for name in "xyz"]
    return model([helper.make_node("Add", ["x", "y"], ["z"])], ends[:2], ends[2:])


def test_where_all_kernels_are_our_own_no_library_is_opened(tmp_path: Path) -> None:
    code = (
        "import sys, numpy, tightship\n"
        "with tightship.load(sys.argv[1]) as model:\n"
        "    print(model(numpy.arange(4), numpy.arange(4)).tolist())\n"
        "print('libdnnl' in open('/proc/self/maps').read())"
    )
    command = [sys.executable, "-c", code, written(tmp_path, sums())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[0, 2, 4, 6]", "False"]


def test_our_own_kernels_are_for_a_processor_too(tmp_path: Path) -> None:
    path = written(tmp_path, sums())
    parts = parts_of(path.read_bytes())
    parts.text["library"]["cpu"] = "z80"
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match=r"prepared for kernels native only, cpu z80; here it is"):
        tightship.load(path)


def test_a_file_with_primitives_that_names_no_library_is_refused(tmp_path: Path) -> None:
    path = dense_file(tmp_path)
    parts = parts_of(path.read_bytes())
    parts.text["library"] = {"kernels": "native only", "cpu": kernel_cpu()}
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match="of a library that it does not need"):
        tightship.load(path)


def test_a_model_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(dense(4)[0])
    with pytest.raises(InputError, match="would take the place of the model"):
        tightship.prepare(path, tmp_path / "." / "model.onnx")
    assert path.read_bytes() == dense(4)[0]


@pytest.mark.slow
def test_a_kill_at_any_line_of_the_writer_leaves_the_old_file_or_the_new_one(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "tests.engine.stored.killed", tmp_path]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    found = json.loads(done.stdout)
    contents = [left for _, _, left, _ in found]
    assert contents == sorted(contents, reverse=True)  # old ones, then new ones
    assert set(contents) == {"old", "new"}
    assert {others for *_, others in found} == {0, 1}  # a draft, which the next writer removes
    tightship.prepare(dense(4)[0], tmp_path / "model.tship")
    assert [path.name for path in tmp_path.iterdir()] == ["model.tship"]


@pytest.mark.slow
@pytest.mark.parametrize("delay_ms", range(0, 60, 3))
def test_a_kill_at_any_time_leaves_no_file_or_a_whole_one(delay_ms: int, tmp_path: Path) -> None:
    source, path = tmp_path / "dense.onnx", tmp_path / "dense.tship"
    source.write_bytes(dense(4, hidden=1 << 16)[0])
    code = (
        "import sys, tightship\nprint(flush=True)\n"
        "while True: tightship.prepare(sys.argv[1], sys.argv[2])"
    )
    done = subprocess.Popen([sys.executable, "-c", code, source, path], stdout=subprocess.PIPE)
    assert done.stdout is not None
    done.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        done.wait(delay_ms / 1000 + 0.05)
    done.kill()
    done.communicate()
    assert not path.exists() or verify_prepared(path) > 0
    tightship.prepare(source, path)
    assert sorted(tmp_path.iterdir()) == [source, path]
