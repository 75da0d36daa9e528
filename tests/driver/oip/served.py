"""A server of small models in a process of its own: `python -m tests.driver.oip.served`."""

import signal
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import onnx

from tests.models import parse
from tightship.driver.oip.model_source import ModelSource

ELEMENTS = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float",
    "FP64": "double",
    "BF16": "bfloat16",
    "BYTES": "string",
}

SIMPLE = """simple (int32[1,16] INPUT0, int32[1,16] INPUT1)
        => (int32[1,16] OUTPUT0, int32[1,16] OUTPUT1) {
    OUTPUT0 = Add(INPUT0, INPUT1)
    OUTPUT1 = Sub(INPUT0, INPUT1)
}"""
SIDE, PRODUCTS = 640, 80
SLOW = (
    f"slow (float[{SIDE},{SIDE}] x) => (float[{SIDE},{SIDE}] y0) {{\n"
    + "y1 = MatMul(x, x)\n"
    + "\n".join(f"y{n} = MatMul(y{n - 1}, x)" for n in range(2, PRODUCTS))
    + f"\ny0 = MatMul(y{PRODUCTS - 1}, x)\n}}"
)
"""Model that runs long enough for other calls to come meanwhile."""
WIDTH = 2048
ENDLESS = (
    "endless (float[1,1] x) => (float[1,1] y) {\n"
    f"shape = Constant<value_ints = [{WIDTH}, {WIDTH}]> ()\ny0 = Expand(x, shape)\n"
    + "\n".join(f"y{n + 1} = MatMul(y{n}, y0)" for n in range(1000))
    + "\ny = ReduceMax(y1000)\n}"
)
"""Model that runs until its client hangs up, or for minutes, in short steps."""
COUNTING = """counting (int64[1] n) => (int64[1] y) {
    start = Constant <value: tensor = int64[1] {0}> ()
    y = Loop (n, "", start) <body = turn (int64 i, bool c, int64[1] s) => (bool more, int64[1] t) {
        more = Identity (c)
        t = Add (s, i)
    }>
}"""
"""Model that runs as long as its input says."""
OPEN = "open (float[n,4] x) => (float[n,4] y) { y = Relu(x) }"


def identity(element):
    return f"identity ({element}[2,3] x) => ({element}[2,3] y) {{ y = Identity(x) }}"


def sources(folder, *, all_types=True, endless=False):
    """Models by name, as files in a folder; with one for each element type, or without."""
    texts = {"simple": SIMPLE, "open": OPEN, "slow": SLOW}
    if endless:
        texts |= {"endless": ENDLESS, "counting": COUNTING}
    if all_types:
        texts |= {f"identity_{name}": identity(element) for name, element in ELEMENTS.items()}
    found = {}
    for name, text in texts.items():
        path = Path(folder) / f"{name}.onnx"
        onnx.save(parse(text), path)
        found[name] = ModelSource(path, {"x": (2, 4)} if name == "open" else None)
    return found


class Served:
    """A running server: its process, and where its endpoints listen."""

    def __init__(self, process):
        self.process = process
        self.socket, self.http, self.grpc = process.stdout.readline().split()


def running(served):
    """Runs under way, of all models."""
    with urllib.request.urlopen(f"http://{served.http}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    found = [line for line in lines if line.startswith("tightship_running_count ")]
    return int(found[0].split()[-1]) if found else 0  # before the first sample


@contextmanager
def server(*options):
    command = [sys.executable, "-m", "tests.driver.oip.served", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Served(process)
        finally:
            process.terminate()
            process.wait(30)


def main():
    from tightship.driver.oip.limits import EndpointLimits
    from tightship.driver.process import Driver, Listening

    limits = EndpointLimits()
    if "small" in sys.argv:
        limits = EndpointLimits(body_bytes_max=1 << 16, connections_max=3)
    elif "hasty" in sys.argv:
        limits = EndpointLimits(transfer_s=0.2)
    with tempfile.TemporaryDirectory() as folder:
        models, socket = (
            sources(folder, all_types="types" in sys.argv, endless="one" in sys.argv),
            Path(folder) / "driver.sock",
        )
        where = Listening(
            socket,
            http=("127.0.0.1", 0),
            grpc=("127.0.0.1", 0),
            allow_client_shm="shm" in sys.argv,
            limits=limits,
        )
        driver = Driver(lambda: models, where, threads=1 if "one" in sys.argv else 2)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: driver.stop())
        addresses = [f"127.0.0.1:{port}" for port in driver.ports.values()]
        print(socket, *addresses, flush=True)  # noqa: T201
        driver.serve()


if __name__ == "__main__":
    main()
