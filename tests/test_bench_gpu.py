"""The benchmark for GPUs on machines without one: up to the driver, and what it says then."""

import ctypes
import importlib
import json
import sys
from types import SimpleNamespace

import pytest
from benchmarks import record
from benchmarks.gpu import bench_gpu, driver_calls

from tests.native.fake_cuda import FakeCuda

VARIABLE = "TIGHTSHIP_CUDA_DRIVER_LIBRARY"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    made = FakeCuda(tmp_path)
    monkeypatch.setenv(VARIABLE, made.path)
    return made


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["bench_gpu", *arguments])
    monkeypatch.delattr(record, "begin")
    bench_gpu.main()


def test_without_a_driver_it_says_so_and_ends(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "libnone.so"))
    with pytest.raises(SystemExit, match=r"libnone.so.*Nothing is measured"):
        run(monkeypatch)


@pytest.mark.parametrize("says", ["print('')", "import nothing_of_that_name"])
def test_without_torch_for_it_it_says_so_before_any_workload(fake, monkeypatch, tmp_path, says):
    (tmp_path / "torch.py").write_text(
        f"{says}\n__version__ = '0'\nclass cuda:\n    is_available = staticmethod(bool)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SystemExit, match="install a build of it"):
        run(monkeypatch)
    assert fake.count("misuses") == 0


def test_every_call_is_timed_and_all_of_it_is_given_back(fake):
    figures = driver_calls.call_figures()
    assert all(value > 0 for value in figures.values())
    for call in ("Create", "Map", "Unmap", "Release"):
        assert {f"cuMem{call}, 2 MiB", f"cuMem{call}, 20 MiB"} <= figures.keys()
    assert fake.count("set_access") == 4 * driver_calls.TIMES
    assert fake.is_empty()


class Pluggable:
    """Stand-in for torch's allocator, made of two functions of a library."""

    def __init__(self, library, allocate, deallocate):
        functions = ctypes.CDLL(library)
        self.allocate, self.deallocate = functions[allocate], functions[deallocate]
        self.allocate.restype = ctypes.c_void_p

    def allocator(self):
        return SimpleNamespace(set_record_stream_fn=lambda _address: None)

    def use(self):
        blocks = [(self.allocate(ctypes.c_ssize_t(size), 0, None), size) for size in (100, 5000)]
        for address, size in blocks:
            self.deallocate(ctypes.c_void_p(address), ctypes.c_ssize_t(size), 0, None)


def test_a_contender_takes_its_memory_from_the_driver_and_prints_its_peaks(
    fake, monkeypatch, capsys
):
    current = []
    memory = SimpleNamespace(
        CUDAPluggableAllocator=Pluggable, change_current_allocator=current.append
    )
    cuda = SimpleNamespace(memory=memory, synchronize=lambda: None, current_device=lambda: 0,
                           mem_get_info=lambda: (3, 10),
                           get_device_name=lambda: "none")  # fmt: skip
    torch = SimpleNamespace(cuda=cuda, manual_seed=lambda _seed: None, __version__="0",
                            version=SimpleNamespace(cuda="12.8"))  # fmt: skip
    workloads = SimpleNamespace(WORKLOADS={"serving": lambda: current[0].use})
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "benchmarks.gpu.workloads", workloads)
    contender = importlib.import_module("benchmarks.gpu.contender")
    monkeypatch.setattr(sys, "argv", ["contender", "serving", "tightship", "3"])
    contender.main()
    figures = json.loads(capsys.readouterr().out)
    assert (figures["reserved_bytes"], figures["allocated_bytes"]) == (2 << 20, 256 + 5120)
    assert (figures["device_bytes"], figures["created_count"]) == (7, 1)
    assert fake.count("create") == 1
    monkeypatch.delitem(sys.modules, "benchmarks.gpu.contender")
