"""No test asserts how long anything takes, so neither does Hypothesis; nor does it cast dice.

Each run tries the same few examples; `--hypothesis-profile searching` tries others every time, and
as many as Hypothesis does by default.
"""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = 30
"""Examples of a test that names no number: more of the same would find no more in another run."""
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("searching", UNTIMED)
settings.register_profile("repeated", UNTIMED, derandomize=True, max_examples=EXAMPLES)
settings.load_profile("repeated")

# A failing test shows where in the package it failed.
os.environ.setdefault("TIGHTSHIP_TRACEBACK", "full")

# Processes that tests start list native objects that their end leaves alive.
os.environ["TIGHTSHIP_LEAK_WARNINGS"] = "1"

# What a test leaves in the user's cache would be read by the next one.
os.environ.setdefault("TIGHTSHIP_KEEP_PROGRAMS", "0")

# A shell that starts the tests in the background may ignore interrupts; processes that tests start
# and interrupt must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def _survivors_are_left_alone():
    """Leave what outlives a file, and pytest itself, out of garbage collections of the next one.

    Each collection would walk through all modules, caches and 17,000 tests, for half a second.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    """Let the end of the process collect all, or nanobind reports what is left as leaks."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return the workers of `pytest -n auto`: one more than processors, for some tests wait.

    Those with Ray take minutes, in which a worker computes little.
    """
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", len(os.sched_getaffinity(0)) + 1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Return the scheduler of workers that take files, which is the one that `pyproject` names."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.scheduling import RayFirst

    return RayFirst(config, log)
