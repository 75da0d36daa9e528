"""CPUs with fewer instructions than this one, which oneDNN can be set to assume."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import tightship
from tests.zoo.networks import network
from tests.zoo.oracle import assert_near
for name in ("residual of batch 3, 17 channels", "mobile", "shuffled", "segmenter", "encoder"):
    case, wanted = network(name)
    with tightship.load(case.model) as model:
        assert_near(model.run(case.feeds), wanted)
        kernels = [step.implementation for step in model.plan.steps if step.kernel == "onednn"]
        assert kernels and not any("{newer}" in kernel for kernel in kernels), kernels
"""


@pytest.mark.parametrize(("cpu", "newer"), [("SSE41", "avx"), ("AVX2", "avx512")])
def test_networks_are_right_on_a_cpu_without_newer_instructions(cpu: str, newer: str) -> None:
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": cpu}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{newer}", newer)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
