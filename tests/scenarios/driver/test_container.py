"""A client that sees a driver's socket and nothing else of where the driver is."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.driver.native_driver import driver
from tests.small_models import dense, dense_result

MODEL, WEIGHTS = dense(batch=4)
EXAMPLE = Path(__file__).parents[3] / "examples" / "container" / "client.py"
SOURCE = Path(tightship.__file__).parents[1]
ENTER = "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); os.execv(sys.argv[2], sys.argv[2:])"
APART = ("unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--propagation", "private")


def command(root, socket):
    """Runs the example where there is Python, the package, and the socket."""
    lines = [f"mount -t tmpfs tmpfs {root}"]
    for path in ("/usr", "/lib", "/lib64", sys.base_prefix, sys.prefix, SOURCE, EXAMPLE.parent):
        if Path(path).exists():
            lines += [f"mkdir -p {root}{path}", f"mount --bind -o ro {path} {root}{path}"]
    lines += [f"touch {root}/driver.sock", f"mount --bind {socket} {root}/driver.sock"]
    lines += [f"test ! -e {root}/dev/shm", f"test ! -e {root}{socket}"]
    run = [sys.executable, str(EXAMPLE), "/driver.sock", "dense"]
    apart = shlex.join([sys.executable, "-c", ENTER, str(root), *run])
    lines.append(f"exec env PYTHONPATH={SOURCE} {apart}")
    return " && ".join(lines)


@pytest.mark.skipif(
    subprocess.run([*APART, "true"], capture_output=True, check=False).returncode != 0,
    reason="no namespaces can be made here",
)
def test_a_client_with_nothing_but_the_socket_runs_a_model(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "dense.onnx").write_bytes(MODEL)
    with driver(tmp_path, tmp_path / "dense.onnx") as running:
        ran = subprocess.run(
            [*APART, "sh", "-c", command(root, running.path)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    wanted = dense_result(np.ones((4, 32), np.float32), WEIGHTS).sum()
    assert float(ran.stdout) == pytest.approx(wanted, rel=1e-4)
