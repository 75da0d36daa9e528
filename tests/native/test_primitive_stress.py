"""Threads on the primitive cache and on pools, the sources compiled with sanitizers.

    python -m pytest -m slow tests/native/test_primitive_stress.py

Needs g++ with libtsan and libasan; a minute for each.
"""

from pathlib import Path

import pytest

from tests.native.sanitized import NATIVE, program, require_sanitizer, run_clean

STRESS = Path(__file__).with_name("stress_primitive.cpp")
REFUSED = Path(__file__).with_name("refused_primitive.cpp")
SOURCES = (
    *sorted((NATIVE / "src/primitive").glob("*.cpp")),
    *sorted((NATIVE / "src/packing").glob("*.cpp")),
    *(NATIVE / "src/resource" / f"{name}.cpp" for name in ("fork_guard", "host", "memory_resource",
                                                           "pages")),
    *sorted((NATIVE / "src/os").glob("*.cpp")),
)  # fmt: skip
STEPS = {"thread": 3_000, "address,undefined": 10_000}


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", STEPS)
def test_threads_stress_the_cache_and_the_pools_clean(sanitizer, tmp_path):
    require_sanitizer(sanitizer)
    made = program((STRESS, *SOURCES), sanitizer, tmp_path)
    for seed in ("1", "2"):
        assert run_clean(made, str(STEPS[sanitizer]), seed) == "done\n"


@pytest.mark.slow
def test_every_allocation_of_the_cache_and_the_pools_may_be_refused(tmp_path):
    require_sanitizer("address,undefined")
    made = program((REFUSED, *SOURCES), "address,undefined", tmp_path)
    assert run_clean(made) == "done\n"
