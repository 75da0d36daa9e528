"""Who runs a model: Tightship or ONNX Runtime, with settings, in the calling process.

A contender is named by a text, so that a name fits a table, a record and a command line:

    tightship                   as `tightship.load` has it
    tightship-PASS[-PASS]       without passes
    ort                         ONNX Runtime's defaults
    ort-nopattern, ort-noarena, ort-nochwc, ort-plain
                                without a memory pattern, without an arena, without blocked
                                layouts (extended optimisations only), without all three
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Run = Callable[[], dict[str, NDArray[Any]]]

ORT_SETTINGS = {
    "": (),
    "nopattern": ("pattern",),
    "noarena": ("arena",),
    "nochwc": ("chwc",),
    "plain": ("pattern", "arena", "chwc"),
}
"""What each variant of ONNX Runtime goes without."""

ORT_NAMES = tuple(f"ort-{variant}".rstrip("-") for variant in ORT_SETTINGS)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to run, and what its runtime says of itself."""

    run: Run
    versions: dict[str, str]


def load(contender: str, model: Path, feeds: Arrays, threads: int) -> Loaded:
    """Load a model the way the contender's name says."""
    runtime, _, settings = contender.partition("-")
    if runtime == "ort":
        return load_ort(model, feeds, threads, ORT_SETTINGS[settings])
    return load_tightship(model, feeds, threads, tuple(filter(None, settings.split("-"))))


def load_tightship(model: Path, feeds: Arrays, threads: int, without: tuple[str, ...]) -> Loaded:
    """By the public interface, its settings untouched but for the passes left out."""
    import tightship

    loaded = tightship.load(model, threads=threads, without=without)
    return Loaded(lambda: loaded.run(feeds), dict(loaded.plan.key))


def load_ort(model: Path, feeds: Arrays, threads: int, without: tuple[str, ...]) -> Loaded:
    """A session on the CPU, all optimisations unless `chwc` is left out."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = "pattern" not in without
    options.enable_cpu_mem_arena = "arena" not in without
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        level.ORT_ENABLE_EXTENDED if "chwc" in without else level.ORT_ENABLE_ALL
    )
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    given = dict(feeds)
    return Loaded(
        lambda: dict(zip(names, session.run(names, given), strict=True)),
        {"onnxruntime": onnxruntime.__version__},
    )
