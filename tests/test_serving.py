"""Workers of servers and pools have one copy of a model's weights: the examples, run."""

import http.client
import io
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.small_models import dense, dense_result
from tightship.cli.process import usage_of_file

ROOT = Path(__file__).parents[1]
HIDDEN = 1 << 14
WORKERS = 3
SEED = 5


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in a folder, and one for prepared models; that folder."""
    (tmp_path / "model.onnx").write_bytes(dense(batch=1, hidden=HIDDEN)[0])
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.setenv("MODEL", str(tmp_path / "model.onnx"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    return tmp_path


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[int]:
    """A server, its process."""
    with subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=ROOT) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and theirs."""
    found: list[int] = []
    for task in Path("/proc").glob(f"{pid}/task/*/children"):
        for child in map(int, read_of_who_lives(task).split()):
            found += [child, *descendants(child)]
    return found


def read_of_who_lives(path: Path) -> str:
    """A file of `/proc`; empty where its process or thread has ended since it was found."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def mapped_by(pids: Sequence[int], folder: Path) -> dict[int, Path]:
    """Map each process to the file of a folder that it has mapped to read other processes' rows."""
    found = {}
    for pid in pids:
        for line in read_of_who_lives(Path(f"/proc/{pid}/maps")).splitlines():
            if str(folder) in line:
                _, rights, _, _, _, path = line.split(maxsplit=5)
                assert rights == "r--s"
                found[pid] = Path(path)
    return found


def posted(path: Path, body: bytes) -> tuple[int, bytes]:
    """Status and body of what a server at a Unix socket answers; it may not listen yet."""
    connection = http.client.HTTPConnection("server")
    while True:
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(os.fspath(path))
            break
        except (FileNotFoundError, ConnectionRefusedError):
            connection.sock.close()
    connection.request("POST", "/", body)
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def check_answers_and_sharing(server: int, path: Path, folder: Path) -> None:
    """Workers answer what the model computes, from one copy of its weights."""
    x = np.random.default_rng(SEED).standard_normal((1, 32), np.float32)
    body = io.BytesIO()
    np.save(body, x)
    holders: dict[int, Path] = {}
    while len(holders) < WORKERS:
        status, answer = posted(path, body.getvalue())
        assert status == 200
        wanted = dense_result(x, dense(batch=1, hidden=HIDDEN)[1])
        assert np.allclose(np.load(io.BytesIO(answer)), wanted, rtol=1e-3, atol=1e-3)
        holders = mapped_by(descendants(server), folder)
    (file,) = set(holders.values())
    shares = [usage_of_file(pid, file) for pid in holders]
    assert sum(share.pss_bytes for share in shares) < 1.2 * file.stat().st_size
    assert posted(path, b"no array")[0] == 400


@pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn is not installed")
@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["", "preload"])
def test_gunicorns_workers_have_one_copy(prepared: Path, options: tuple[str, ...]) -> None:
    path = prepared / "socket"
    arguments = ("--workers", str(WORKERS), "--bind", f"unix:{path}", *options)
    with serving("gunicorn", *arguments, "examples.wsgi:application") as server:
        check_answers_and_sharing(server, path, prepared / "prepared")


@pytest.mark.skipif(find_spec("uvicorn") is None, reason="uvicorn is not installed")
def test_uvicorns_workers_have_one_copy(prepared: Path) -> None:
    path = prepared / "socket"
    arguments = ("--workers", str(WORKERS), "--uds", str(path))
    with serving("uvicorn", *arguments, "examples.asgi:application") as server:
        check_answers_and_sharing(server, path, prepared / "prepared")


def test_a_pool_of_new_interpreters_computes_what_the_model_does(prepared: Path) -> None:
    command = [sys.executable, "examples/pool.py", str(prepared / "model.onnx"), "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    weights = dense(batch=1, hidden=HIDDEN)[1]
    inputs = [np.full((1, 32), number, np.float32) for number in range(8)]
    wanted = [dense_result(x, weights).sum() for x in inputs]
    assert np.allclose([float(word) for word in done.stdout.split()], wanted, rtol=1e-2)
    assert done.stderr == ""


def test_every_example_is_run_here() -> None:
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    elsewhere = {
        "fallback": "scenarios/driver/test_buffer_uses",
        "ray_serve": "cluster/test_ray_example",
    }
    assert names == {"asgi", "pool", "wsgi"} | elsewhere.keys()
    assert all((ROOT / "tests" / f"{test}.py").is_file() for test in elsewhere.values())
    assert runpy.run_path(str(ROOT / "examples/pool.py"))["main"]


CODE = """
import sys, numpy, tightship
with tightship.load(sys.argv[1]) as model:
    model(numpy.ones((1, 32), "float32"))
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def mounted(tmp_path: Path) -> list[str]:
    """A command that runs another where `inner` is `outer`, mounted to be read only."""
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
    script = (
        f"mount --bind {tmp_path}/outer {tmp_path}/inner && "
        f'mount -o remount,ro,bind {tmp_path}/inner && exec "$@"'
    )
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces are not allowed here")
    return command


def test_who_mounts_the_file_read_only_shares_it(tmp_path: Path, mounted: list[str]) -> None:
    import tightship

    (tmp_path / "model.onnx").write_bytes(dense(batch=1, hidden=HIDDEN)[0])
    tightship.prepare(tmp_path / "model.onnx", tmp_path / "outer" / "model.tship")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", CODE]
    with (
        subprocess.Popen([*command, tmp_path / "outer" / "model.tship"], **pipes) as outer,
        subprocess.Popen(
            [*mounted, *command, tmp_path / "inner" / "model.tship"], **pipes
        ) as inner,
    ):
        size = (tmp_path / "outer" / "model.tship").stat().st_size
        for process in (outer, inner):
            assert process.stdout.readline() == b"ready\n"
        for process, name in ((outer, "outer"), (inner, "inner")):
            used = usage_of_file(process.pid, tmp_path / name / "model.tship")
            assert used.uss_bytes < 0.1 * size
            assert 0.4 * size < used.pss_bytes < 0.6 * size
        outer.stdin.close()
        inner.stdin.close()
