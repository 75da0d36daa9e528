"""Users that may connect: the driver's own user, root, and users that were allowed."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.driver.native_driver import COMMAND, driver
from tests.small_models import dense, dense_result
from tightship.driver.server.access import Access
from tightship.driver.types.status import ErrorStatus

MODEL, WEIGHTS = dense(batch=4)
X = np.ones((4, 32), np.float32)
OTHER = 65_432
"""A user that need not exist."""

AS_ANOTHER = """
import os, sys
import numpy as np
from tightship.driver import Client
from tightship.errors import DriverError
os.setgid({user}); os.setuid({user})
with Client(sys.argv[1]) as client:
    model = client.prepare_named("dense")
    print(float(model.execute([np.ones((4, 32), np.float32)])[0].sum()))
    try:
        client.inspect()
    except DriverError as error:
        print(error.status)
"""


def test_its_own_user_and_root_are_admitted_and_others_when_allowed():
    assert Access().admits(os.geteuid())
    assert Access().admits(0)
    assert not Access().admits(OTHER)
    assert Access(users=frozenset({OTHER})).admits(OTHER)


@pytest.fixture
def folder():
    """A folder that others can enter, as they cannot that of the tests."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "dense.onnx").write_bytes(MODEL)
        yield place


def run_as(user, path):
    program = AS_ANOTHER.format(user=user)
    return subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_that_is_allowed_runs_models_and_does_not_see_who_holds_what(folder):
    with driver(folder, folder / "dense.onnx", "--allow", str(OTHER)) as running:
        assert stat.S_IMODE(running.path.stat().st_mode) == 0o666
        ran = run_as(OTHER, running.path)
        assert ran.returncode == 0, ran.stderr
        assert float(ran.stdout.split()[0]) == pytest.approx(
            dense_result(X, WEIGHTS).sum(), rel=1e-4
        )
        assert int(ran.stdout.split()[1]) == ErrorStatus.INVALID_ARGUMENT
        refused = run_as(OTHER + 1, running.path)
        assert "DEVICE_UNAVAILABLE" in refused.stderr or "is gone" in refused.stderr
        with running.client() as own:
            assert own.inspect().clients


def test_without_others_only_the_own_user_reaches_the_socket(folder):
    with driver(folder) as running:
        assert stat.S_IMODE(running.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("options", [["--allow", "root"], ["--allow", "no-user-of-this-name"]])
def test_users_are_allowed_at_a_socket_that_is_named(options, tmp_path):
    socket_option = [] if options[1] == "root" else ["--socket", str(tmp_path / "s")]
    ran = subprocess.run(
        [*COMMAND, *options, *socket_option], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ("--socket" if options[1] == "root" else "Unknown user") in ran.stderr
