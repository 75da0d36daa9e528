"""Models on several threads: right, alone in their process or beside others."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import tightship
from tests.engine.fake_library import interposing, with_libgomp
from tests.engine.test_openmp import workers
from tests.zoo.light import randomised
from tightship import _core
from tightship.engine.library import VARIABLE, bundled

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

SCRIPT = """
import ctypes, os, sys
import numpy as np
path, given, got, preload = sys.argv[1:]
if preload:
    ctypes.CDLL(preload, mode=ctypes.RTLD_GLOBAL)
import tightship
x = np.load(given)
with tightship.load(path, threads=3) as model:
    feeds = {name: x for name in model.plan.inputs}
    for _ in range(3):
        (y,) = model.run(feeds).values()
    print(model.plan.key["openmp"])
np.save(got, y)
print(*{line.split("/")[-1].strip() for line in open("/proc/self/maps") if "/" in line})
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return randomised("squeezenet", 5, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return np.random.default_rng(6).standard_normal((1, 3, 224, 224)).astype(np.float32)


@pytest.fixture(scope="module")
def expected(path: Path, x: np.ndarray) -> np.ndarray:
    with tightship.load(path) as model:
        return one_output(model, x)


def one_output(model: tightship.Model, x: np.ndarray) -> np.ndarray:
    (y,) = model.run(dict.fromkeys(model.plan.inputs, x)).values()
    return y


def in_a_process(
    path: Path, x: np.ndarray, folder: Path, preload: Path | str = "", **environment: str
) -> tuple[np.ndarray, str, set[str]]:
    """Return a process's results on three threads, its threads by owner, and files it mapped."""
    given, got = folder / "x.npy", folder / "y.npy"
    np.save(given, x)
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(given), str(got), str(preload)],
        env=inherited | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    openmp, mapped = done.stdout.splitlines()
    return np.load(got), openmp, set(mapped.split())


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8])
def test_any_number_of_threads_computes_the_same(
    path: Path, x: np.ndarray, expected: np.ndarray, threads: int
) -> None:
    with tightship.load(path, threads=threads) as model:
        first = one_output(model, x)
        again = [one_output(model, x) for _ in range(3)]
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-7)
    assert all(np.array_equal(first, other) for other in again)


def test_many_callers_run_models_on_several_threads_at_once(path: Path, x: np.ndarray) -> None:
    with tightship.load(path, threads=2) as one, tightship.load(path, threads=3) as other:
        alone = [one_output(model, x) for model in (one, other)]
        results: list[tuple[int, np.ndarray]] = []

        def call(which: int) -> None:
            for _ in range(3):
                results.append((which, one_output((one, other)[which], x)))  # noqa: PERF401

        callers = [threading.Thread(target=call, args=(index % 2,)) for index in range(6)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert len(results) == 18
    assert all(np.array_equal(y, alone[which]) for which, y in results)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_runs_the_model_of_its_parent(path: Path, x: np.ndarray) -> None:
    with tightship.load(path, threads=3) as model:
        expected = one_output(model, x)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(one_output(model, x), expected) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(one_output(model, x), expected)


def outputs_beside_a_neighbour(path: Path, x: np.ndarray) -> list[np.ndarray]:
    """Return the outputs of a run, and of five whose workers get next to no time."""
    processor, before = min(os.sched_getaffinity(0)), workers()
    spin = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    with tightship.load(path, threads=4) as model:
        results = [one_output(model, x)]
        with subprocess.Popen([sys.executable, "-c", spin]) as neighbour:
            for worker in map(int, workers() - before):
                os.sched_setscheduler(worker, os.SCHED_IDLE, os.sched_param(0))
                os.sched_setaffinity(worker, {processor})
            results += [one_output(model, x) for _ in range(5)]
            neighbour.kill()
    return results


def test_workers_that_get_next_to_no_time_stop_nothing(path: Path, x: np.ndarray) -> None:
    with ThreadPoolExecutor(1) as own:  # which its workers end with
        expected, *results = own.submit(outputs_beside_a_neighbour, path, x).result()
    assert all(np.array_equal(y, expected) for y in results)


def test_no_other_openmp_runtime_is_loaded(
    path: Path, x: np.ndarray, expected: np.ndarray, tmp_path: Path
) -> None:
    y, openmp, mapped = in_a_process(path, x, tmp_path, OMP_NUM_THREADS="7")
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-7)
    assert openmp == "tightship"
    assert "libtsomp.so" in mapped
    assert not [name for name in mapped if "gomp" in name or "iomp" in name]


def test_functions_that_others_offer_to_the_process_are_not_called(
    path: Path, x: np.ndarray, expected: np.ndarray, tmp_path: Path
) -> None:
    y, openmp, mapped = in_a_process(path, x, tmp_path, interposing(tmp_path))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-7)
    assert openmp == "tightship"
    assert "libinterposing.so" in mapped


def test_another_library_runs_on_its_own_openmp_runtime(
    path: Path, x: np.ndarray, expected: np.ndarray, tmp_path: Path
) -> None:
    chosen = {VARIABLE: str(with_libgomp(tmp_path, Path(bundled())))}
    y, openmp, mapped = in_a_process(path, x, tmp_path, **chosen)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-7)
    assert openmp == "libgomp.so.1"
    assert any(name.startswith("libgomp.so.1") for name in mapped)


def test_two_runtimes_in_one_process_are_both_right(path: Path, x: np.ndarray) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    with tightship.load(path, threads=2) as model:
        for _ in range(3):
            (reference,) = session.run(None, {session.get_inputs()[0].name: x})
            np.testing.assert_allclose(one_output(model, x), reference, rtol=1e-3, atol=1e-6)
