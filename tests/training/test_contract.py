"""Planned bytes of a training step, held against the operating system."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.training.nets import net

MARGIN_BYTES = 2 << 20

SCRIPT = """
import json, sys
import numpy as np
import tightship

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

model, feeds, settings = sys.argv[1], dict(np.load(sys.argv[2])), json.loads(sys.argv[3])
before = status("VmRSS")
with tightship.train(model, "cross_entropy", tightship.Adam(), **settings) as trainer:
    for _ in range(3):
        loss = trainer.step(feeds)
    print(json.dumps([trainer.peak_bytes, status("VmHWM") - before, loss]))
"""


def wide():
    """Activations of 17 MB each, and 13 MB of weights in a layer."""
    random = np.random.default_rng(0)
    return net(
        """wide (float[64,3,32,32] x) => (float[64,10] y) {
            a = Conv <pads = [1, 1, 1, 1]> (x, w1)
            b = BatchNormalization (a, scale1, b1, mean1, variance1)
            c = Relu (b)
            d = Conv <pads = [1, 1, 1, 1]> (c, w2)
            e = Relu (d)
            f = GlobalAveragePool (e)
            g = Flatten (f)
            h = Gemm (g, w3, b3)
            i = Relu (h)
            y = Gemm (i, w4, b4)
        }""",
        "cross_entropy",
        {
            "x": random.standard_normal((64, 3, 32, 32)).astype(np.float32),
            "labels": random.integers(0, 10, 64),
        },
        w1=(64, 3, 3, 3), scale1=(64,), b1=(64,), mean1=(64,), variance1=(64,),
        w2=(64, 64, 3, 3), w3=(64, 50_000), b3=(50_000,), w4=(50_000, 10), b4=(10,),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"recompute": 0.5}, {"threads": 2}, {"accumulate": 2}])
def test_a_process_gains_no_more_than_was_said(tmp_path, settings):
    case = wide()
    (tmp_path / "net.onnx").write_bytes(case.model)
    with (tmp_path / "net.npz").open("wb") as file:
        np.savez(file, **case.feeds)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "net.onnx", tmp_path / "net.npz",
         json.dumps(settings)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, gained, loss = json.loads(done.stdout)
    assert np.isfinite(loss)
    assert gained <= said + MARGIN_BYTES
