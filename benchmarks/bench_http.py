"""`tightship serve` beside a service of FastAPI and ONNX Runtime, under 1, 16 and 128 clients.

    python -m benchmarks.bench_http
    python -m benchmarks.bench_http --quick

Each server is a process, and runs the model on one thread. Clients keep a connection each, send
different rows in turn, and are tasks of this process. FastAPI's service is what one
writes first: it reads the row, runs the session in its thread pool, and returns the bytes. The
inference protocol has a header of JSON besides. `tightship joined` is the same server with dynamic
batching, of up to 16 rows. Servers alternate.
"""

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from benchmarks import record
from benchmarks.served_models import STACKS, stack

CLIENTS = (1, 16, 128)
ROWS = 509
"""Different rows, more than any server keeps; clients begin at different ones."""
SERVICE = """
import sys, threading
import numpy as np, onnxruntime, uvicorn
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, ["CPUExecutionProvider"])
app, one = FastAPI(), threading.Lock()

def infer(body):
    with one:
        (y,) = session.run(None, {"x": np.frombuffer(body, np.float32).reshape(1, -1)})
    return y.tobytes()

@app.post("/infer")
async def answer(request: Request):
    return Response(await run_in_threadpool(infer, await request.body()))

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)

Server(uvicorn.Config(app, port=0, log_level="warning")).run()
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Port of a server, and the bytes of requests that are sent in turn."""

    port: int
    requests: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Place(Target):
    """A server with its process."""

    process: "subprocess.Popen[str]"

    def resident_bytes(self) -> int:
        """Return the resident memory of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * 4096


def posted(target: str, body: bytes, *headers: str) -> bytes:
    """Return the bytes of a request."""
    head = [f"POST {target} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def asked(width: int, path: Path) -> dict[str, tuple[list[str], list[bytes]]]:
    """Return the command of each server, and requests of its own."""
    values = np.random.default_rng(1).standard_normal((ROWS, width), np.float32)
    rows = [each.tobytes() for each in values]
    tensor = {"name": "x", "shape": [1, width], "datatype": "FP32"}
    tensor["parameters"] = {"binary_data_size": 4 * width}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    length = f"Inference-Header-Content-Length: {len(head)}"
    serve = [sys.executable, "-m", "tightship.cli", "serve", "--http", "0"]
    serve += ["--max-connections", "256", "--socket"]
    posts = [posted(f"/v2/models/{path.stem}/infer", head + each, length) for each in rows]
    return {
        "tightship": (
            [*serve, str(path.with_name("socket")), str(path), "--shape", f"x=1x{width}"],
            posts,
        ),
        "tightship joined": (
            [*serve, str(path.with_name("joined")), "--model-repository", _repository(path)],
            posts,
        ),
        "fastapi": (
            [sys.executable, "-c", SERVICE, str(path)],
            [posted("/infer", each) for each in rows],
        ),
    }


def _repository(path: Path) -> str:
    """Write a repository of a model whose requests are joined; return its path."""
    place = path.with_name("repository") / path.stem / "1"
    place.mkdir(parents=True)
    (place / "model.onnx").write_bytes(path.read_bytes())
    config = "max_batch_size: 16 dynamic_batching { }"
    (place.parent / "config.pbtxt").write_text(config, encoding="utf-8")
    return str(place.parent.parent)


@contextmanager
def started(command: Sequence[str], requests: Sequence[bytes]) -> Iterator[Place]:
    """Run a server, which prints its port last in the first line, within a block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rpartition(":")[2])
            yield Place(port, requests, process)
        finally:
            process.terminate()
            process.wait(60)


async def _client(place: Target, number: int, end: float, took: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    requests = itertools.cycle(place.requests)
    for _ in range(37 * number % len(place.requests)):
        next(requests)
    while (began := time.perf_counter()) < end:
        writer.write(next(requests))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        await reader.readexactly(int(head.partition(b"\r\ncontent-length:")[2].split(b"\r\n")[0]))
        took.append(time.perf_counter() - began)
    writer.close()


async def load(place: Target, clients: int, seconds: float) -> dict[str, float]:
    """Have clients ask again and again; return requests a second, and milliseconds."""
    took: list[float] = []
    began = time.perf_counter()
    end = began + seconds
    await asyncio.gather(*(_client(place, number, end, took) for number in range(clients)))
    spent, ordered = time.perf_counter() - began, sorted(took)
    return {
        "per_s": len(took) / spent,
        "p50_ms": 1000 * median(ordered),
        "p99_ms": 1000 * ordered[int(0.99 * (len(ordered) - 1))],
    }


def row(name: str, rounds: int, seconds: float) -> Iterator[dict[str, object]]:
    """Measure a model under each number of clients: medians of interleaved rounds."""
    width = STACKS[name][0]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        path = Path(folder) / "net.onnx"
        onnx.save(stack(*STACKS[name]), path)
        places = {
            key: opened.enter_context(started(*each)) for key, each in asked(width, path).items()
        }
        for clients in CLIENTS:
            found: dict[str, list[dict[str, float]]] = {key: [] for key in places}
            for number in range(1 + rounds):  # the first is not counted
                for key, place in places.items():
                    each = asyncio.run(load(place, clients, seconds))
                    found[key] += [each] if number else []
            said = {key: _medians(each) for key, each in found.items()}
            for key, place in places.items():
                said[key]["resident_mib"] = round(place.resident_bytes() / 2**20, 1)
            yield {
                "model": name,
                "clients": clients,
                **said,
                "tightship_over_fastapi": _ratio(found, "tightship", "fastapi"),
                "joined_over_tightship": _ratio(found, "tightship joined", "tightship"),
            }


def _ratio(found: Mapping[str, Sequence[Mapping[str, float]]], one: str, other: str) -> float:
    """Return the median of the ratios of throughput in the same rounds."""
    pairs = zip(found[one], found[other], strict=True)
    return round(median(a["per_s"] / b["per_s"] for a, b in pairs), 2)


def _medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {key: round(median(each[key] for each in rows), 2) for key in rows[0]}


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_http")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; record nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rounds, seconds = (1, 0.2) if options.quick else (3, 2.0)
    rows = []
    for name in ("small", "middle"):
        for each in row(name, rounds, seconds):
            rows.append(each)
            if not options.json:
                print(json.dumps(each), flush=True)
    if options.json:
        print(json.dumps({"rows": rows}))
    if not options.quick:
        record.append("bench_http", {"rows": rows})


if __name__ == "__main__":
    main()
