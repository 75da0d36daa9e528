"""Loads and runs a model in some runtime, in one process that is measured.

The module is started by its path, so that the process imports only what its runtime needs, or
imported before a fork. It reads jobs, which are lines of JSON, and answers each with one line;
lines of progress may come before. The process ends when the other end of the socket closes.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

Job = Mapping[str, Any]
Answer = dict[str, object]
Run = Callable[[], object]


def serve(descriptor: int) -> None:
    """Do the jobs that come through an open socket, until its other end closes."""
    with suppress(BrokenPipeError), open(descriptor) as jobs, open(os.dup(descriptor), "w") as out:
        worker = Worker(out)
        for line in jobs:
            with Telling(out):
                worker.tell(worker.done(json.loads(line)))


class Telling:
    """Sends exceptions of a job to the process that gave the job."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, BrokenPipeError):
            return False
        text = str(error) or type(error).__name__
        self._out.write(json.dumps({"error": text}) + "\n")
        self._out.flush()
        return True


class Worker:
    """Does jobs, and holds the model that is loaded."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._run: Run | None = None

    def tell(self, answer: Answer) -> None:
        """Send a line."""
        self._out.write(json.dumps(answer) + "\n")
        self._out.flush()

    def done(self, job: Job) -> Answer:
        """Do a job and return its answer.

        Raises:
            Exception: Any exception of a runtime.
        """
        match job["job"]:
            case "prepare":
                return self._prepare(job)
            case "save":
                return _save_for_onnxruntime(job)
            case "load":
                return self._load(job)
            case _:
                return self._time(job["repeat"])

    def _prepare(self, job: Job) -> Answer:
        """Write a prepared model, unless the file is one, and files with inputs for it."""
        import numpy as np

        from tightship.errors import InputError
        from tightship.loading import load
        from tightship.loading.preparing import prepare
        from tightship.model.feeds import made_up

        if job["output"]:
            prepare(
                job["model"],
                job["output"],
                shapes=job["shapes"],
                threads=job["threads"],
                progress=lambda done, total: self.tell({"done": done, "total": total}),
            )
        random = np.random.Generator(np.random.PCG64(0))
        with load(job["output"] or job["model"]) as model:
            types = model.input_types
        inputs = {}
        for number, (name, (dtype, shape)) in enumerate(types.items()):
            if shape is None:
                message = f"Input `{name}` has no fixed type, so no input can be made for it."
                raise InputError(message)
            inputs[name] = f"{job['folder']}/{number}.npy"
            np.save(inputs[name], made_up(random, dtype, shape))
        return {"inputs": inputs}

    def _load(self, job: Job) -> Answer:
        """Load a model and run it once; return nanoseconds to the first result."""
        import numpy as np

        feeds = {name: np.load(file) for name, file in job["inputs"].items()}
        start_ns, self._run = LOADERS[job["runtime"]](job, feeds)
        self._run()
        return {"first_ns": time.perf_counter_ns() - start_ns}

    def _time(self, repeat: int) -> Answer:
        assert self._run is not None
        times = []
        for _ in range(repeat):
            start_ns = time.perf_counter_ns()
            self._run()
            times.append(time.perf_counter_ns() - start_ns)
        return {"run_ns": times}


def _tightship(job: Job, feeds: Mapping[str, Any]) -> tuple[int, Run]:
    from tightship.loading import (
        load,
        restoring,  # noqa: F401  imported before the clock starts, as with ONNX Runtime
    )

    start_ns = time.perf_counter_ns()
    model = load(job["model"])
    return start_ns, lambda: model.run(feeds)


def _onnxruntime(job: Job, feeds: Mapping[str, Any]) -> tuple[int, Run]:
    import onnxruntime  # type: ignore[import-untyped]

    start_ns = time.perf_counter_ns()
    options = _session_options(job)
    if job["is_optimized"]:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        job["model"], options, providers=["CPUExecutionProvider"]
    )
    return start_ns, lambda: session.run(None, feeds)


LOADERS = {"tightship": _tightship, "onnxruntime": _onnxruntime}


def _save_for_onnxruntime(job: Job) -> Answer:
    """Make ONNX Runtime write its optimized model, with weights in a separate file."""
    import onnxruntime

    options = _session_options(job)
    options.optimized_model_filepath = job["output"]
    onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    return {}


def _session_options(job: Job) -> Any:  # noqa: ANN401
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = job["threads"]
    options.inter_op_num_threads = 1
    for key, value in job["entries"]:
        options.add_session_config_entry(key, value)
    return options


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(int(sys.argv[1]))
