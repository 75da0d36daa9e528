"""Contenders that run a model: Tightship or ONNX Runtime, with settings, in the calling process.

A contender is named by a text, so that a name fits a table, a record and a command line:
`tightship-PASS[-PASS...]` leaves passes out, `ort-SETTING[-SETTING...]` sets ONNX Runtime up
otherwise than its defaults.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Run = Callable[[], dict[str, NDArray[Any]]]

ORT_SETTINGS = {
    "nopattern": "no memory pattern, the block planned from the first run",
    "noarena": "malloc instead of an arena",
    "device": "initializers allocated one by one, outside the arena",
    "noprepack": "no copy of weights in the layout of its kernels",
    "extended": "no blocked layouts (`ORT_ENABLE_EXTENDED`)",
    "basic": "constant folding and the like only (`ORT_ENABLE_BASIC`)",
    "asis": "no optimisation, for a file that is optimised",
    "nospin": "threads sleep while they wait",
}
LEVELS = {
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "asis": "ORT_DISABLE_ALL",
}
ENTRIES = {
    "device": ("session.use_device_allocator_for_initializers", "1"),
    "noprepack": ("session.disable_prepacking", "1"),
    "nospin": ("session.intra_op.allow_spinning", "0"),
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to run, and what its runtime says of itself.

    `planned_bytes` is what it said in advance that it would take; 0 where it says nothing.
    """

    run: Run
    versions: dict[str, str]
    planned_bytes: int = 0


def load(contender: str, model: Path, feeds: Arrays, threads: int = 1) -> Loaded:
    """Load a model the way the contender's name says."""
    runtime, *settings = contender.split("-")
    return LOADERS[runtime](model, feeds, threads, settings)


def load_tightship(model: Path, feeds: Arrays, threads: int, without: list[str]) -> Loaded:
    """Load by the public interface, with default settings except the passes left out."""
    import tightship

    shapes = {name: array.shape for name, array in feeds.items()}
    loaded = tightship.load(model, shapes=shapes, threads=threads, without=without)
    plan = loaded.plan
    return Loaded(lambda: loaded.run(feeds), dict(plan.key), plan.peak_bytes)


def load_ort(model: Path, feeds: Arrays, threads: int, settings: list[str]) -> Loaded:
    """A session on the CPU with its defaults and the settings named."""
    import onnxruntime  # type: ignore[import-untyped]

    session = onnxruntime.InferenceSession(
        model, ort_options(threads, settings), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    given = dict(feeds)
    return Loaded(
        lambda: dict(zip(names, session.run(names, given), strict=True)),
        {"onnxruntime": onnxruntime.__version__},
    )


def ort_options(threads: int, settings: list[str]) -> Any:
    """Options of a session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = "nopattern" not in settings
    options.enable_cpu_mem_arena = "noarena" not in settings
    for setting in settings:
        if setting in LEVELS:
            level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[setting])
            options.graph_optimization_level = level
        if setting in ENTRIES:
            options.add_session_config_entry(*ENTRIES[setting])
    return options


LOADERS = {"tightship": load_tightship, "ort": load_ort}
"""Functions that load a model, by runtime."""
