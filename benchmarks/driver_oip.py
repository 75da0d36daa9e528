"""Compare the inference endpoints with a real Triton server, by the unmodified `tritonclient`.

    python -m benchmarks.driver_oip --triton 127.0.0.1:8000,127.0.0.1:8001

An identity model is given a tensor and gives it back: through shared memory, or within the message.
Triton runs its own in its Python backend; `python -m tests.driver.oip.triton_models FOLDER` writes
the model for it. Without `--triton` our endpoints are measured alone. `--before PYTHON` measures an
earlier version as well, which that interpreter has.
"""

import argparse
import asyncio
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from benchmarks import bench_http, record
from onnx import TensorProto, helper

SIZES = (4 << 10, 1 << 20, 16 << 20, 64 << 20)
RAW_SIZES = (4 << 10, 1 << 20)
"""Tensors that are measured within messages too; larger ones take what copying takes."""
UNREGISTER_TRIES = 40
TURN = 5
"""Calls of one server before it is the other's turn."""
TARGETS = {("http", False): 0.5, ("http", True): 0.25, ("grpc", False): 1.3, ("grpc", True): 0.5}
"""Most that ours may take of Triton's time through shared memory: at 4 KiB, and from 16 MiB on."""
LARGE_BYTES = 16 << 20
CROWDS = (1, 16, 128)
"""Clients at once, by HTTP."""


@dataclass(frozen=True, slots=True)
class Place:
    """Address of a server, and the name of its identity model for a size."""

    address: str
    model: str


Call = Callable[[], object]


def rows(
    *, quick: bool, triton: str = "", before: str = "", endpoints: Sequence[str] = ("http", "grpc")
) -> Iterator[dict[str, object]]:
    """Times of endpoints for every size; of Triton and an earlier version as well if given.

    Args:
        quick: Whether a few calls are enough.
        triton: `HTTP,GRPC`, the addresses of a server with the model `identity`; empty for none.
        before: Interpreter that has an earlier version; empty for none.
        endpoints: Which endpoints.
    """
    theirs = dict(zip(("http", "grpc"), filter(None, triton.split(",")), strict=False))
    with ExitStack() as opened:
        ours = {"tightship": opened.enter_context(server())}
        if before:
            ours["before"] = opened.enter_context(server(before))
        yield {f"{name}_idle_kib": each["idle_kib"] for name, each in ours.items()}
        for endpoint in endpoints:
            for size in SIZES:
                for is_shared in (True, False) if size in RAW_SIZES else (True,):
                    places = {
                        name: Place(str(each[endpoint]), f"identity{size}")
                        for name, each in ours.items()
                    }
                    if endpoint in theirs:
                        places["triton"] = Place(theirs[endpoint], "identity")
                    times = measured(endpoint, size, places, is_shared=is_shared, quick=quick)
                    yield row(endpoint, size, times, is_shared=is_shared)
        if "http" in endpoints:
            known = {name: str(each["http"]) for name, each in ours.items()}
            if "http" in theirs:
                known["triton"] = theirs["http"]
            yield from crowds(known, quick=quick)


def crowds(addresses: Mapping[str, str], *, quick: bool) -> Iterator[dict[str, object]]:
    """Requests a second of many HTTP clients whose tensors of 4 KiB are in messages.

    Args:
        addresses: Places of servers by name; servers alternate.
        quick: Whether a short time is enough.
    """
    rounds, seconds = (1, 0.2) if quick else (3, 2.0)
    targets = {name: asked(name, address) for name, address in addresses.items()}
    for clients in CROWDS:
        found: dict[str, list[float]] = {name: [] for name in targets}
        for number in range(1 + rounds):  # the first is not counted
            for name, target in targets.items():
                figures = asyncio.run(bench_http.load(target, clients, seconds))
                found[name] += [figures["per_s"]] if number else []
        said: dict[str, object] = {"endpoint": "http", "size_bytes": SIZES[0], "clients": clients}
        said |= {f"{name}_per_s": round(median(each)) for name, each in found.items()}
        if "triton" in found:
            ratio = median(found["tightship"]) / median(found["triton"])
            said["tightship_over_triton"] = round(ratio, 2)
        yield said


def asked(name: str, address: str) -> bench_http.Target:
    """A server's identity model of the smallest size, and a request for it."""
    model = "identity" if name == "triton" else f"identity{SIZES[0]}"
    tensor = {"name": "x", "shape": [SIZES[0] // 16, 4], "datatype": "FP32"}
    tensor["parameters"] = {"binary_data_size": SIZES[0]}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    length = f"Inference-Header-Content-Length: {len(head)}"
    request = bench_http.posted(f"/v2/models/{model}/infer", head + bytes(SIZES[0]), length)
    return bench_http.Target(int(address.rpartition(":")[2]), [request])


def row(
    endpoint: str, size: int, times: dict[str, list[float]], *, is_shared: bool
) -> dict[str, object]:
    """One line of figures: microseconds, and ours as a part of Triton's."""
    said: dict[str, object] = {
        "endpoint": endpoint,
        "size_bytes": size,
        "tensor": "shared memory" if is_shared else "message",
    }
    for name, taken in times.items():
        said[f"{name}_us"] = round(median(taken) * 1e6)
        said[f"{name}_least_us"] = round(min(taken) * 1e6)
    if "before" in times:
        said["over_before"] = round(median(times["tightship"]) / median(times["before"]), 3)
        said["over_before_least"] = round(min(times["tightship"]) / min(times["before"]), 3)
    if "triton" in times:
        said["ratio"] = round(median(times["tightship"]) / median(times["triton"]), 3)
        said["ratio_least"] = round(min(times["tightship"]) / min(times["triton"]), 3)
        is_large = size >= LARGE_BYTES
        if is_shared and (is_large or size == SIZES[0]):
            said["target"] = TARGETS[endpoint, is_large]
    return said


def measured(
    endpoint: str, size: int, places: dict[str, Place], *, is_shared: bool, quick: bool
) -> dict[str, list[float]]:
    """Seconds of each call, of servers that alternate."""
    count = (2 if quick else 12) if size >= LARGE_BYTES else (10 if quick else 60)
    times: dict[str, list[float]] = {name: [] for name in places}
    with ExitStack() as opened:
        calls = {
            name: opened.enter_context(caller(endpoint, size, place, is_shared=is_shared))
            for name, place in places.items()
        }
        for _ in range(count):
            for name, call in calls.items():
                call()
                for _ in range(TURN):
                    begin = time.perf_counter()
                    call()
                    times[name].append(time.perf_counter() - begin)
    return times


@contextmanager
def caller(endpoint: str, size: int, place: Place, *, is_shared: bool) -> Iterator[Call]:
    """A call of an identity model, which is checked before and after."""
    module = importlib.import_module(f"tritonclient.{endpoint}")
    x = np.random.default_rng(0).random((size // 16, 4), np.float32)
    given, wish = module.InferInput("x", list(x.shape), "FP32"), module.InferRequestedOutput("y")
    with module.InferenceServerClient(place.address) as client:
        if not is_shared:
            given.set_data_from_numpy(x)

            def call() -> object:
                return client.infer(place.model, [given], outputs=[wish])

            assert np.array_equal(call().as_numpy("y"), x)  # type: ignore[attr-defined]
            yield call
            return
        with region(client, 2 * size) as (name, handle):
            memory = importlib.import_module("tritonclient.utils.shared_memory")
            memory.set_shared_memory_region(handle, [x])
            given.set_shared_memory(name, size)
            wish.set_shared_memory(name, size, size)
            yield lambda: client.infer(place.model, [given], outputs=[wish])
            got = memory.get_contents_as_numpy(handle, np.float32, list(x.shape), size)
            assert np.array_equal(got, x), "the identity has given back something else"
            del got


@contextmanager
def region(client: object, size: int) -> Iterator[tuple[str, object]]:
    """Shared memory that a server knows by a name."""
    memory = importlib.import_module("tritonclient.utils.shared_memory")
    name = uuid.uuid4().hex
    handle = memory.create_shared_memory_region(name, f"/{name}", size)
    client.register_system_shared_memory(name, f"/{name}", size)  # type: ignore[attr-defined]
    try:
        yield name, handle
    finally:
        unregister(client, name)
        memory.destroy_shared_memory_region(handle)


def unregister(client: object, name: str) -> None:
    """Have a server forget shared memory; Triton refuses for a moment after its last use."""
    error = importlib.import_module("tritonclient.utils").InferenceServerException
    for last in (False,) * UNREGISTER_TRIES + (True,):
        try:
            client.unregister_system_shared_memory(name)  # type: ignore[attr-defined]
        except error as refused:
            if last or "in use" not in str(refused):
                raise
            time.sleep(0.05)
        else:
            return


@contextmanager
def server(python: str = sys.executable) -> Iterator[dict[str, object]]:
    """`tightship serve` in a process of its own: where it listens, and its memory when idle."""
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            onnx.save(identity(size), Path(folder) / f"identity{size}.onnx")
        command = [
            python, "-m", "tightship.cli", "serve", folder, "--socket", f"{folder}/socket",
            "--http", "0", "--grpc", "0", "--allow-client-shm", "--max-connections", "256",
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            *_, http, grpc = process.stdout.readline().split("//")
            try:
                time.sleep(1.0)
                yield {
                    "http": http.partition(",")[0],
                    "grpc": grpc.strip(),
                    "idle_kib": resident_kib(process.pid),
                }
            finally:
                process.terminate()


def resident_kib(process: int) -> int:
    """Resident memory of a process in KiB."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(text.partition("VmRSS:")[2].split()[0])


def identity(size: int) -> onnx.ModelProto:
    """A model that gives back `size` bytes."""
    shape = [size // 16, 4]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--triton", default="", metavar="HTTP,GRPC", help="a real server's places")
    parser.add_argument("--quick", action="store_true", help="a few calls of each")
    parser.add_argument("--before", default="", metavar="PYTHON", help="has an earlier version")
    parser.add_argument("--only", choices=("http", "grpc"), help="one endpoint")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    options = parser.parse_args(arguments)
    if not options.triton:
        print("No Triton server was given (--triton HTTP,GRPC): our endpoints alone.")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    line = record.begin("driver_oip") if options.record else None
    endpoints = (options.only,) if options.only else ("http", "grpc")
    found = []
    for each in rows(
        quick=options.quick, triton=options.triton, before=options.before, endpoints=endpoints
    ):
        print("  ".join(f"{key} {value}" for key, value in each.items()), flush=True)
        found.append(each)
        if line is not None:
            line.write({"endpoints": found})


if __name__ == "__main__":
    main()
