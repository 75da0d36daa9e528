"""`examples/ray_serve.py` runs on a real cluster."""

import os
import subprocess
import sys
from pathlib import Path

from tests.zoo import light

EXAMPLE = Path(__file__).parents[2] / "examples" / "ray_serve.py"


def test_the_example_serves_and_ends(shared_cluster):
    command = [sys.executable, EXAMPLE, light.path_of("squeezenet"), "--replicas", "1"]
    result = subprocess.run(
        [*command, "--port", "8196", "--requests", "2"],
        env={**os.environ, "RAY_ADDRESS": shared_cluster.address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("(1, 1000, 1, 1)") == 2
