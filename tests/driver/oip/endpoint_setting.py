"""An endpoint in process, over small models and one object of shared memory."""

import json
import os

import numpy as np
import onnx

from tests.models import parse
from tightship._core import RunPermits
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Region
from tightship.driver.oip.repository import Repository

X = np.arange(4, dtype=np.float32)
TEXTS = {
    "neg": "m (float[1,4] x) => (float[1,4] y) { y = Neg(x) }",
    "double": "m (int32[1,4] x) => (int32[1,4] y) { y = Add(x, x) }",
    "arena": "m (float[1,4] x) => (float[1,4] y) { s = Softmax(x) y = Add(s, x) }",
}


class Setting:
    """An endpoint in process, with an object of 64 bytes that has the name `r`."""

    def __init__(self, folder):
        for name, text in TEXTS.items():
            onnx.save(parse(text), folder / f"{name}.onnx")
        self.path = folder / "key"
        self.path.write_bytes(bytes(64))
        self.repository = Repository(
            lambda: {name: ModelSource(folder / f"{name}.onnx") for name in TEXTS}
        )
        for name in TEXTS:
            self.repository.load(name)
        self.regions = RegionFiles(is_enabled=True, folder=folder)
        self.endpoint = InferenceEndpoint(self.repository, self.regions, RunPermits(1))
        self.calls = HttpCalls(self.endpoint, 1 << 16)
        self.register()

    def register(self, name="r"):
        self.regions.register(Region(name, "/key", 0, 64))

    def infer(self, *, model="neg", given=0, taken=16, out="r", datatype="FP32"):
        """Run `model` from byte `given` to byte `taken`: the status and what is said."""
        body = self.body(given=given, taken=taken, out=out, datatype=datatype)
        target = f"/v2/models/{model}/infer"
        response = self.calls.respond(HttpRequest("POST", target, {}, body))
        return response.status, json.loads(b"".join(response.parts))

    def body(self, *, given=0, taken=16, out="r", datatype="FP32"):
        """Return the body of a request as `infer` makes it."""

        def place(region, offset):
            keys = ("region", "byte_size", "offset")
            values = (region, 16, offset)
            return {f"shared_memory_{key}": each for key, each in zip(keys, values, strict=True)}

        tensor = {"name": "x", "shape": [1, 4], "datatype": datatype}
        said = {
            "inputs": [tensor | {"parameters": place("r", given)}],
            "outputs": [{"name": "y", "parameters": place(out, taken)}],
        }
        return json.dumps(said).encode()

    def put(self, array, offset=0):
        with self.path.open("r+b") as file:
            os.pwrite(file.fileno(), array.tobytes(), offset)

    def got(self, offset=16, dtype=np.float32):
        return np.frombuffer(self.path.read_bytes(), dtype, 4, offset)

    def count(self, model="neg"):
        return self.repository.counts(model)

    def close(self):
        self.regions.unregister(None)
        self.repository.close()
