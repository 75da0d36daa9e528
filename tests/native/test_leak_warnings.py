"""Native objects that the end of the interpreter leaves alive: listed for tests, not for users."""

import os
import subprocess
import sys

import pytest

KEEP_ONE = """
import ctypes
from tightship._core import StopFlag
flag = StopFlag()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(flag))
"""
VARIABLE = "TIGHTSHIP_LEAK_WARNINGS"


@pytest.mark.parametrize("wanted", [False, True])
def test_a_leak_is_listed_only_where_the_environment_asks(wanted: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {VARIABLE: "1"} if wanted else {}
    command = [sys.executable, "-c", KEEP_ONE]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ("StopFlag" in finished.stderr) == wanted
    assert bool(finished.stderr) == wanted


def test_tests_ask_for_leaks() -> None:
    assert VARIABLE in os.environ
