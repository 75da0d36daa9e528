"""A lock file has the same bytes in every run, with other hashes, folders and free memory."""

import os
import subprocess
import sys

import pytest

from tests.decoders import llama
from tests.models import conv_net
from tests.small_models import dense

RUNS = 100
BUDGETS = """
[[budget]]
model = "net.onnx"

[[budget]]
model = "dense.onnx"
shapes = {batch = 512}
threads = 2

[[budget]]
model = "decoder.onnx"
shapes = {batch_size = 1, sequence_length = 8, past_sequence_length = 0}
"""


def locked(folder, number: int) -> bytes:
    """Write a lock file in a process of its own, whose hashes and heap are like no other's."""
    models = {"net": conv_net().SerializeToString(), "dense": dense()[0], "decoder": llama()}
    place = folder / f"{number:0{number % 40 + 1}}"
    place.mkdir()
    for name, model in models.items():
        (place / f"{name}.onnx").write_bytes(model)
    (place / "tightship.toml").write_text(BUDGETS)
    code = (
        f"import sys; held = [bytearray(size) for size in range(0, {1000 * number}, 777)]\n"
        "from tightship.cli import main; sys.exit(main(['budget', 'lock']))"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env={**os.environ, "PYTHONHASHSEED": str(number), "OMP_NUM_THREADS": str(number % 4 + 1)},
        check=True,
        capture_output=True,
        timeout=60,
    )
    return (place / "tightship.lock").read_bytes()


def test_two_runs_write_the_same_bytes(tmp_path) -> None:
    assert locked(tmp_path, 1) == locked(tmp_path, 2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_runs_write_the_same_bytes(tmp_path) -> None:
    assert len({locked(tmp_path, number) for number in range(RUNS)}) == 1
