"""Throughput and latency of many clients of one model, with requests joined and without.

Clients are threads of the server's process that call its endpoint and encode the answer, so that
what is measured is the queue and the runs. ONNX Runtime runs behind the same queue. Every run is on
one thread, and one at a time.

python -m benchmarks.bench_serve
python -m benchmarks.bench_serve --quick
python -m benchmarks.bench_serve --only decoder
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from benchmarks import record
from benchmarks.served_models import MODELS, Served

from tightship._core import RunPermits
from tightship.driver.oip.cached_inference import Inferences
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.infer_request import InferRequest, InputTensor
from tightship.driver.oip.infer_response import encode
from tightship.driver.oip.model_folder import model_folders
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository
from tightship.graph import DType

CONFIGS = {"alone": "", "joined": " dynamic_batching {}"}
Ask = Callable[[InferRequest, Caller], Any]


class OtherModel:
    """Session of ONNX Runtime, with what the queue uses of a model."""

    def __init__(self, path: Path, like: Any) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.input_types, self.output_types = like.input_types, like.output_types
        self.output_names, self.takes_other_shapes, self.is_closed = like.output_names, True, False
        self._growing = None

    def run(self, arrays: Mapping[str, Any], **_: object) -> dict[str, Any]:
        """Run the session."""
        found = self._session.run(self.output_names, dict(arrays))
        return dict(zip(self.output_names, found, strict=True))


def contenders(folder: Path, served: Served) -> tuple[Mapping[str, Ask], Callable[[], None]]:
    """Return ways to have a request run by name, and what closes the model."""
    repository = Repository(lambda: model_folders(folder, lambda *_: {}))
    for key, config in CONFIGS.items():
        place = folder / key / "1"
        place.mkdir(parents=True)
        (place / "model.onnx").write_bytes(served.model)
        (place.parent / "config.pbtxt").write_text(f"max_batch_size: {served.batch_max}{config}")
        repository.load(key)
    regions, permits = RegionFiles(is_enabled=False), RunPermits(1)
    endpoint = InferenceEndpoint(repository, regions, permits)
    inferences = Inferences(regions, repository)
    other: Any = OtherModel(place / "model.onnx", repository.served("joined").model)
    theirs = replace(repository.served("joined"), model=other)

    def ours(key: str, request: InferRequest, caller: Caller) -> Any:
        return endpoint.infer(key, None, request, None, caller).outputs

    def their(request: InferRequest, caller: Caller) -> Any:
        with repository.used("joined"):
            return inferences.answer(theirs, request, time.monotonic_ns(), caller)[0]

    asks: dict[str, Ask] = {key: partial(ours, key) for key in CONFIGS}
    asks["onnxruntime joined"] = their
    return {key: partial(_asked, permits, ask) for key, ask in asks.items()}, repository.close


def _asked(permits: RunPermits, ask: Ask, request: InferRequest) -> Any:
    return encode("model", "1", "", ask(request, Caller(permits)))


def load(ask: Callable[[InferRequest], Any], served: Served, seconds: float) -> dict[str, float]:
    """Have all clients ask again and again; return requests per second, and milliseconds.

    `cpu_ms` is the processor time of a request.
    """
    tensors = tuple(
        InputTensor(name, DType(str(array.dtype)), array.shape, _bytes_of(array))
        for name, array in served.inputs.items()
    )
    request = InferRequest("", tensors, (), is_binary=True, timeout_s=None)
    took: list[float] = []
    end = time.perf_counter() + seconds

    def client() -> None:
        while (began := time.perf_counter()) < end:
            ask(request)
            took.append(time.perf_counter() - began)

    threads = [threading.Thread(target=client) for _ in range(served.clients)]
    began, used = time.perf_counter(), time.process_time()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    spent, ordered = time.perf_counter() - began, sorted(took)
    return {
        "per_s": len(took) / spent,
        "cpu_ms": 1000 * (time.process_time() - used) / len(took),
        "p50_ms": 1000 * median(ordered),
        "p99_ms": 1000 * ordered[int(0.99 * (len(ordered) - 1))],
    }


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def row(name: str, *, quick: bool) -> dict[str, object]:
    """Measure a model: interleaved rounds, of which the median of each figure is kept."""
    found: dict[str, list[dict[str, float]]] = {}
    served = MODELS[name]()
    rounds, seconds = (1, 0.2) if quick else (served.rounds, 2.0)
    with tempfile.TemporaryDirectory() as folder:
        asks, close = contenders(Path(folder), served)
        for ask in asks.values():
            load(ask, served, max(1.0, seconds))  # programs for all batches
        for _ in range(rounds):
            for key, ask in asks.items():
                found.setdefault(key, []).append(load(ask, served, seconds))
        close()
    figures = {key: _medians(each) for key, each in found.items()}
    return {
        "model": name,
        "clients": served.clients,
        **figures,
        "joined_over_alone": _ratio(found, "joined", "alone"),
        "joined_over_onnxruntime": _ratio(found, "joined", "onnxruntime joined"),
        "cpu_joined_over_alone": _ratio(found, "alone", "joined", "cpu_ms"),
        "cpu_joined_over_onnxruntime": _ratio(found, "onnxruntime joined", "joined", "cpu_ms"),
    }


def _medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {key: round(median(each[key] for each in rows), 2) for key in rows[0]}


def _ratio(
    found: Mapping[str, Sequence[Mapping[str, float]]], one: str, other: str, key: str = "per_s"
) -> float:
    pairs = zip(found[one], found[other], strict=True)
    return round(median(a[key] / b[key] for a, b in pairs), 2)


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_serve")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; record nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", choices=MODELS, help="one model; record nothing")
    options = parser.parse_args()
    names = (options.only,) if options.only else tuple(MODELS)
    rows = [row(name, quick=options.quick) for name in names]
    if options.json:
        print(json.dumps({"rows": rows}))
    else:
        for each in rows:
            print(json.dumps(each, indent=1))
    if not (options.quick or options.only):
        record.append("bench_serve", {"rows": rows})


if __name__ == "__main__":
    main()
