"""Processes that are measured end with those who started them, and say what went wrong."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_models import dense
from tightship.cli.workers import STARTS, WorkerError, worker_alone, workers


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("start", STARTS)
def test_they_all_end_with_the_group(start: str) -> None:
    with workers(start, 2, "Test") as group:
        pids = [asked.pid for asked in group]
        assert all(map(is_alive, pids))
        assert len({os.getpid(), *pids}) == 3
    assert not any(map(is_alive, pids))


def test_they_end_with_an_interrupt_too() -> None:
    pids: list[int] = []

    def interrupted() -> None:
        with workers("spawn", 2, "Test") as group:
            pids.extend(asked.pid for asked in group)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(pids) == 2
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("start", STARTS)
def test_one_that_is_killed_is_named_with_its_signal(start: str) -> None:
    with workers(start, 2, "Test") as group:
        os.kill(group[1].pid, signal.SIGKILL)
        group[1].send({"job": "run", "repeat": 1})
        with pytest.raises(WorkerError, match="Test, process 2 of 2 was ended by SIGKILL"):
            group[1].answer()


@pytest.mark.parametrize("start", STARTS)
def test_what_goes_wrong_in_one_is_its_message(start: str, tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"not a model")
    job = {"job": "load", "runtime": "tightship", "inputs": {}, "model": str(tmp_path / "a.onnx")}
    with (
        workers(start, 1, "Test") as (asked,),
        pytest.raises(WorkerError, match=r"Test, process 1 of 1: .*a\.onnx"),
    ):
        asked.ask(job)


def test_one_whose_parent_is_killed_ends_by_itself() -> None:
    code = (
        "import os, signal\n"
        "from tightship.cli.workers import workers\n"
        "with workers('spawn', 2, 'Test') as group:\n"
        "    print(*[asked.pid for asked in group], flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.read().split()]  # until all ends are closed
    assert len(pids) == 2
    assert all(ends(pid) for pid in pids)


def ends(pid: int) -> bool:
    """Whether a process that is not a child of this one ends, or has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with open(descriptor):
        return bool(select.select([descriptor], [], [], 30)[0])


def test_a_model_is_prepared_with_inputs_for_it(tmp_path: Path) -> None:
    model = tmp_path / "dense.onnx"
    model.write_bytes(dense()[0])
    told: list[tuple[int, int]] = []
    job = {"job": "prepare", "model": str(model), "output": str(tmp_path / "dense.tship")}
    with worker_alone("Test") as asked:
        settings = {"folder": str(tmp_path), "shapes": {"x": [3, 32]}, "threads": 1}
        answer = asked.ask({**job, **settings}, lambda *amounts: told.append(amounts))
    assert list(answer["inputs"]) == ["x"]
    assert told[-1][0] == told[-1][1] > 0
