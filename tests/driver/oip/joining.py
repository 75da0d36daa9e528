"""An endpoint of a model whose requests are joined."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

from tests.models import parse
from tightship._core import RunPermits
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.infer_request import InferRequest, InputTensor
from tightship.driver.oip.model_folder import model_folders
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository
from tightship.graph import DType

BATCHING = "max_batch_size: 8 dynamic_batching { }"
ROWS = """m (float[n,16] x, int64[n] i) => (float[n,16] y) {
    w = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]> ()
    g = Gather(w, i)
    axes = Constant<value_ints = [1]> ()
    u = Unsqueeze(g, axes)
    y = Mul(x, u)
}"""


class Setting:
    """An endpoint of a model whose requests are joined, with one permit."""

    def __init__(self, folder, config=BATCHING):
        place = folder / "rows" / "1"
        place.mkdir(parents=True)
        onnx.save(parse(ROWS), place / "model.onnx")
        (place.parent / "config.pbtxt").write_text(config)
        self.repository = Repository(lambda: model_folders(folder, lambda *_: {}))
        self.repository.load("rows")
        regions = RegionFiles(is_enabled=False)
        self.endpoint = InferenceEndpoint(self.repository, regions, RunPermits(1))
        self.threads = ThreadPoolExecutor(16)

    def ask(self, x, index=0, caller=None, timeout_s=None):
        """Ask in another thread for rows of a number, each times an entry of the table."""
        rows = np.atleast_1d(np.asarray(x, np.float32))
        given = np.repeat(rows, 16).reshape(-1, 16)
        number = np.full(len(rows), index, np.int64)
        inputs = tuple(
            InputTensor(name, dtype, array.shape, array.reshape(-1).view(np.uint8).data)
            for name, dtype, array in (("x", DType.FLOAT32, given), ("i", DType.INT64, number))
        )
        request = InferRequest("", inputs, (), is_binary=True, timeout_s=timeout_s)
        asking = caller or Caller(self.endpoint.permits)
        return self.threads.submit(self.endpoint.infer, "rows", None, request, None, asking)

    def wait_for(self, count):
        wait_for(self.endpoint.permits, count)

    def close(self):
        self.threads.shutdown()
        self.repository.close()


def wait_for(permits, count):
    """Wait until so many requests wait for a permit."""
    until = time.monotonic() + 30
    while permits.waiting_count < count and time.monotonic() < until:
        time.sleep(0.001)
    assert permits.waiting_count == count


def value(answer):
    (output,) = answer.result(30).outputs
    return output.array[:, 0].tolist()
