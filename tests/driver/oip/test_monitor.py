"""Figures that a driver reports of itself."""

import errno
import threading

from tightship._core import RunPermits
from tightship.driver.oip import monitor as watching
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository

PATIENCE_S = 30


def test_a_moment_without_descriptors_is_left_out_and_watching_goes_on(monkeypatch, tmp_path):
    seen = threading.Event()
    samples = iter([OSError(errno.EMFILE, "Too many open files")])

    def sample(_):
        for error in samples:
            raise error
        seen.set()
        return watching.Sample(0, 0, 0, 0, 0)

    monkeypatch.setattr(watching, "_sample", sample)
    monkeypatch.setattr(watching, "PERIOD_S", 0.01)
    endpoint = InferenceEndpoint(Repository(dict), RegionFiles(is_enabled=False), RunPermits(1))
    monitor = Monitor(endpoint, tmp_path / "socket")
    monitor.start()
    assert seen.wait(PATIENCE_S)
    monitor.stop()
    assert monitor.metrics()
