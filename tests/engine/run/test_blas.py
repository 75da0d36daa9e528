"""NumPy's BLAS takes the threads and the memory that it may."""

import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

import tightship
from tests import small_models
from tightship.engine.run.blas import ThreadLimit, thread_limit

PROGRAM = """
import resource
from tightship.engine.plan.footprint import BLAS_BYTES
from tightship.engine.run.blas import reserve_blas_buffer
from tightship.errors import OutOfMemoryError

def data_bytes():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(each for each in lines if each.startswith("VmData:")).split()[1]) << 10

hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
before = data_bytes()
resource.setrlimit(resource.RLIMIT_DATA, (before + BLAS_BYTES // 2, hard))
try:
    reserve_blas_buffer()
except OutOfMemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_DATA, (before + 2 * BLAS_BYTES, hard))
reserve_blas_buffer()
after = data_bytes()
reserve_blas_buffer()
assert data_bytes() == after <= before + BLAS_BYTES + (1 << 20)
print("reserved")
"""


def test_a_refusal_is_an_error_and_the_buffer_is_reserved_once():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    refusal, end = done.stdout.splitlines()
    assert "refuses 33554432 bytes for the buffer of NumPy's BLAS" in refusal
    assert end == "reserved"


class Library:
    """OpenBLAS of which the number of threads alone matters."""

    def __init__(self, threads):
        self.threads = threads

    def scipy_openblas_get_num_threads64_(self):
        return self.threads

    def scipy_openblas_set_num_threads64_(self, threads):
        self.threads = threads


def test_the_least_limit_holds_and_the_users_number_comes_back():
    library = Library(4)
    limit = ThreadLimit(library)
    with limit.at_most(8):
        assert library.threads == 4
        with limit.at_most(1):
            assert library.threads == 1
        assert library.threads == 4
    assert library.threads == 4
    first, second = limit.at_most(1), limit.at_most(2)  # of two threads, which end in this order
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert library.threads == 2
    second.__exit__(None, None, None)
    assert library.threads == 4


def test_a_model_of_one_thread_multiplies_in_one(monkeypatch):
    limit = thread_limit()
    if limit is None:
        pytest.skip("NumPy has another BLAS than its wheels")
    weight = {"w": np.ones((8, 8))}
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = small_models.model([node], [("x", 11, [4, 8])], [("y", 11, [4, 8])], weight)
    multiply, seen, before = np.matmul, [], limit._get()

    def watched(*operands, **named):
        seen.append(limit._get())
        return multiply(*operands, **named)

    with tightship.load(model, threads=1) as loaded:
        monkeypatch.setattr(np, "matmul", watched)
        loaded(np.ones((4, 8)))
    assert seen == [1]
    assert limit._get() == before
