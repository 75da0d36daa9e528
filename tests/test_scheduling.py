"""Tests with Ray go to one worker, which begins with them; other files are divided."""

import os
from types import SimpleNamespace

import pytest

from tests.scheduling import RayFirst

TESTS = (
    *(f"tests/planner/test_large.py::test_{number}" for number in range(9)),
    *("tests/cluster/test_one.py::test_a", "tests/cluster/test_one.py::test_b"),
    *("tests/planner/test_small.py::test_a", "tests/cluster/test_two.py::test_a"),
)


class Worker:
    """Worker as the scheduler sees it; keeps the tests that it is given, in order."""

    def __init__(self, name: str) -> None:
        self.given: list[str] = []
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += [TESTS[index] for index in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


def test_one_worker_begins_with_all_tests_of_ray(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    scheduler, workers = RayFirst(pytestconfig), [Worker("a"), Worker("b")]
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, TESTS)
    scheduler.schedule()
    first, second = workers
    assert first.given[:3] == [name for name in TESTS if "cluster" in name]
    assert second.given[:9] == list(TESTS[:9])
    assert {*first.given, *second.given} <= set(TESTS)


def test_the_suite_is_scheduled_so(pytestconfig: pytest.Config) -> None:
    made = pytestconfig.hook.pytest_xdist_make_scheduler
    assert any("tests/conftest.py" in str(each.plugin_name) for each in made.get_hookimpls())
    assert pytestconfig.getini("addopts")[2:4] == ["--dist", "loadfile"]


def test_a_worker_more_than_there_are_processors_is_started(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = pytestconfig.hook.pytest_xdist_auto_num_workers
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    assert workers(config=pytestconfig) == len(os.sched_getaffinity(0)) + 1
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "7")
    assert workers(config=pytestconfig) == 7
