"""A process without memory for the buffer of NumPy's BLAS is told so, and lives."""

import subprocess
import sys

PROGRAM = """
import resource
from tightship.engine.plan.footprint import BLAS_BYTES
from tightship.engine.run.blas_buffer import reserve_blas_buffer
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
