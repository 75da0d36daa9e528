"""Implements `tightship run`: loads a model, runs it, and compares its memory with the plan."""

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tightship.cli import process
from tightship.cli.argument_types import max_memory
from tightship.cli.output import show, show_json
from tightship.cli.progress import Progress
from tightship.cli.tune_option import tune
from tightship.engine.plan.concurrency_report import concurrency_json, concurrency_text
from tightship.errors import FormatError, InputError
from tightship.graph import DType
from tightship.loading import load
from tightship.model import Array, Model
from tightship.model.feeds import made_up
from tightship.quantity import format_bytes
from tightship.resource.resident import resident_bytes
from tightship.view.table import Column, table

SEED = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """Memory that loading and running a model added to the process, and seconds of each run."""

    resident_bytes: int
    data_bytes: int
    times: list[float]


def run(options: argparse.Namespace) -> int:
    """Run a model on given or random inputs; print the planned and the measured memory."""
    path = options.file
    _check_outputs(options.output, options.trace)
    tuned = tune(options, path)
    # Made before the measurement, because importing NumPy's generators takes memory of its own.
    random = np.random.Generator(np.random.PCG64(SEED))
    resident, data = resident_bytes(), process.data_bytes()
    with (
        Progress("packing weights") as progress,
        load(
            path,
            shapes=dict(options.shape),
            max_memory=max_memory(options),
            dynamic_memory=options.dynamic_memory,
            threads=options.threads,
            workers=options.workers,
            workers_memory=options.workers_memory,
            without=options.without,
            precision=options.precision,
            tune=tuned,
            share=options.share,
            progress=progress,
        ) as model,
    ):
        inputs = _inputs(model, options.input, random)
        outputs, times = _timed(model, inputs, options)
        # Loading also returns memory freed earlier, so the difference may be negative.
        grown = max(0, process.data_bytes() - data)
        measured = Measured(process.peak_resident_bytes() - resident, grown, times)
        wanted = options.profile or options.by_operator or options.trace
        profile = model.profile(inputs, repeat=options.repeat) if wanted else None
    if options.output:
        _save(outputs, Path(options.output))
    if profile is not None and options.trace:
        profile.save_trace(options.trace)
    if options.json:
        said = {} if profile is None else {"profile": profile.to_json()}
        show_json({**_json(model, measured, outputs), **said})
    else:
        show(_text(model, measured, outputs))
        if profile is not None:
            show("\n" + profile.table(top=options.top, by_operator=options.by_operator))
    return 0


def _inputs(model: Model, given: list[str], random: np.random.Generator) -> dict[str, Array]:
    """Read arrays from files, and fill the other inputs from a seed."""
    arrays: dict[str, Array] = {}
    for option in given:
        name, separator, file = option.rpartition("=")
        if not separator:
            raise InputError(f"`{option}` is not an input; write NAME=FILE.npy.")
        arrays[name] = _loaded(file)
    for name, (dtype, shape) in model.input_types.items():
        if name in arrays:
            continue
        if shape is None or dtype is DType.STRING:
            raise InputError(f"Input `{name}` has no fixed type; add --input {name}=FILE.npy.")
        arrays[name] = made_up(random, dtype, shape)
    return arrays


def _loaded(file: str) -> Array:
    try:
        array: Array = np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        # For unknown content NumPy advises to allow pickles, which would run code of the file.
        why = "" if "pickle" in str(error) else f": {error}"
        raise FormatError(f"`{file}` is not an array as `np.save` writes it{why}.") from None
    return array


def _timed(
    model: Model, inputs: dict[str, Array], options: argparse.Namespace
) -> tuple[dict[str, Array], list[float]]:
    def run() -> dict[str, Array]:
        return model.run(inputs, timeout_s=options.timeout)

    outputs = run()
    times = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        outputs = run()
        times.append(time.perf_counter() - start)
    return outputs, times


def _check_outputs(output: str | None, trace: str | None) -> None:
    if trace is not None and Path(trace).suffix != ".json":
        raise InputError(f"Cannot write a trace as `{Path(trace).name}`; choose .json.")
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"Outputs go into a folder, and `{output}` is a file; name another.")


def _save(outputs: dict[str, Array], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in outputs.items():
        np.save(folder / f"{name.replace('/', '_')}.npy", array, allow_pickle=False)


def _text(model: Model, measured: Measured, outputs: dict[str, Array]) -> str:
    plan = model.plan
    rows = [
        ("weights", format_bytes(plan.weights_bytes)),
        ("arena", format_bytes(plan.arena_bytes)),
        ("inputs and outputs", format_bytes(plan.io_bytes)),
        ("runtime", format_bytes(plan.runtime_bytes)),
        ("planned", format_bytes(plan.peak_bytes)),
        ("measured: most that was resident", format_bytes(measured.resident_bytes)),
        ("measured: reserved for writing", format_bytes(measured.data_bytes)),
    ]
    lines = [f"{plan.model} · {'exact' if plan.is_exact else 'bounded'} plan"]
    lines += table([Column("part"), Column("size", number=True)], rows)
    median = statistics.median(measured.times) * 1e3
    lines.append(
        f"median of {len(measured.times)} runs {median:.2f} ms, {plan.key['threads']} thread(s)"
        + (f", {plan.concurrency.workers} workers" if plan.concurrency else "")
    )
    if plan.concurrency is not None:
        lines += concurrency_text(plan.concurrency).splitlines()
    lines += [f"{name}: {_shown(array)}" for name, array in outputs.items()]
    return "\n".join(lines) + "\n"


def _shown(array: object) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    shape = "x".join(str(length) for length in array.shape) or "scalar"
    if array.size == 0 or array.dtype.kind not in "fiu":
        return f"{shape} {array.dtype}"
    top = np.unravel_index(int(np.argmax(array)), array.shape)
    where = ", ".join(str(int(index)) for index in top)
    return f"{shape} {array.dtype}, largest {array.max():.4g} at [{where}]"


def _json(model: Model, measured: Measured, outputs: dict[str, Array]) -> dict[str, object]:
    plan = model.plan
    return {
        "model": plan.model,
        "exact": plan.is_exact,
        "peak_bytes": plan.peak_bytes,
        "weights_bytes": plan.weights_bytes,
        "arena_bytes": plan.arena_bytes,
        "inputs_and_outputs_bytes": plan.io_bytes,
        "runtime_bytes": plan.runtime_bytes,
        "measured_resident_bytes": measured.resident_bytes,
        "measured_data_bytes": measured.data_bytes,
        "run_ns": [int(seconds * 1e9) for seconds in measured.times],
        "outputs": {
            name: {"shape": list(np.shape(array)), "dtype": str(np.asarray(array).dtype)}
            for name, array in outputs.items()
        },
        "key": dict(plan.key),
        **({"concurrency": concurrency_json(plan.concurrency)} if plan.concurrency else {}),
    }
