"""Threads on memory resources, the sources compiled with sanitizers.

    python -m pytest -m slow tests/native/test_resource_stress.py

Needs g++ with libtsan and libasan; a minute for each.
"""

import subprocess
from pathlib import Path

import pytest

from tests.native.fake_cuda import SOURCE as DRIVER
from tests.native.sanitized import NATIVE, flags, program, require_sanitizer, run_clean

HERE = Path(__file__).parent
SYSTEM = sorted((NATIVE / "src/os").glob("*.cpp"))
RESOURCES = sorted((NATIVE / "src/resource").rglob("*.cpp"))
VIRTUAL = [
    *sorted((NATIVE / "src/resource/virtual").glob("*.cpp")),
    *(
        NATIVE / "src/resource" / f"{name}.cpp"
        for name in ("fork_guard", "memory_resource", "pages")
    ),
]
SANITIZERS = pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
STEPS = {"thread": 6_000, "address,undefined": 30_000}
CUDA_STEPS = {"thread": 1_000, "address,undefined": 3_000}


@pytest.mark.slow
@SANITIZERS
def test_threads_stress_every_resource_clean(sanitizer, tmp_path):
    require_sanitizer(sanitizer)
    made = program([HERE / "stress_resource.cpp", *RESOURCES, *SYSTEM], sanitizer, tmp_path)
    for seed in ("1", "2"):
        assert "scarce" in run_clean(made, str(STEPS[sanitizer]), seed)


@pytest.mark.slow
@SANITIZERS
def test_threads_stress_the_memory_of_cuda_devices_clean(sanitizer, tmp_path):
    require_sanitizer(sanitizer)
    driver = tmp_path / "libcuda_fake.so"
    shared = ["-fPIC", "-shared", DRIVER, "-o", driver]
    subprocess.run(["g++", *flags(sanitizer), *shared], check=True)
    made = program([HERE / "stress_cuda.cpp", *VIRTUAL, *SYSTEM], sanitizer, tmp_path)
    for seed in ("1", "2"):
        assert run_clean(made, driver, str(CUDA_STEPS[sanitizer]), seed) == "all given back\n"
