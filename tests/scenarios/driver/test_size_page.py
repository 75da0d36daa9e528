"""The figures and programs of the page "Size a container", in its order."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("tritonclient.http")
from tests.docs.fences import differences
from tests.driver.oip.serve_process import serve
from tests.scenarios.driver.control_group import control_group

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "size-a-container.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
MAKING, CALLING = (text for kind, text in BLOCKS if kind == "python")
(PLAN,) = (text for kind, text in BLOCKS if kind == "console")
TRIED = next(text for kind, text in BLOCKS if kind == "sh" and "systemd-run" in text)
OPTIONS = TRIED.replace("\\\n", " ").partition("net.onnx ")[2].split()
LIMIT_BYTES = int(re.search(r"MemoryMax=(\d+)M", TRIED)[1]) << 20
MIB = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the model of the page."""
    found = tmp_path_factory.mktemp("page")
    subprocess.run([sys.executable, "-c", MAKING], cwd=found, check=True)
    return found


def call(served, folder):
    """Run the clients of the page, of which none may fail."""
    program = CALLING.replace("127.0.0.1:8000", served.http)
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


def peak_bytes(served):
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10


def test_the_plan_of_the_page_is_printed(folder):
    command, _, shown = PLAN.removeprefix("$ tightship ").partition("\n")
    ran = [sys.executable, "-m", "tightship.cli", *command.split()]
    printed = subprocess.run(ran, cwd=folder, capture_output=True, text=True, check=True)
    assert differences(shown.rstrip(), printed.stdout) == []


def test_the_sum_of_the_page_is_the_limit_that_it_sets():
    cells = re.findall(r"^\|.*\| ([^|]*) \|$", PAGE, re.MULTILINE)[1:]
    parts = [float(each.split()[-2]) for each in cells if each.endswith(" MiB")]
    (total,) = (float(each.strip("*").split()[0]) for each in cells if each.endswith("MiB**"))
    assert sum(parts) == pytest.approx(total, abs=0.5)
    said = {int(each) for each in re.findall(r"(?<![\w.])(\d+)(?:Mi|M|m)\b", PAGE)}
    assert said == {LIMIT_BYTES // MIB}
    assert 0 <= LIMIT_BYTES // MIB - total < 16


def test_a_server_under_the_load_of_the_page_stays_within_its_limit(folder):
    with (
        control_group(LIMIT_BYTES) as enter,
        serve(folder / "net.onnx", *own_options(), before=enter) as served,
    ):
        call(served, folder)
        assert 0.75 * LIMIT_BYTES < peak_bytes(served) <= LIMIT_BYTES


def test_a_control_group_that_is_too_small_ends_the_server(folder):
    with (
        control_group(80 * MIB) as enter,
        serve(folder / "net.onnx", *own_options(), before=enter) as served,
    ):
        if not enter:
            pytest.skip("no control group of memory can be made here")
        assert served.process.wait(30) == -signal.SIGKILL


def own_options():
    """Options of the page, apart from the addresses."""
    found = list(OPTIONS)
    for name in ("--http", "--grpc"):
        place = found.index(name)
        del found[place : place + 2]
    return found
