"""Chooses layouts by running a model, instead of by a cost table; stores choices in a file."""

import hashlib
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tightship.atomic_file import write_text
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import library_key, open_library
from tightship.engine.lower.steps.options import Choice
from tightship.engine.weights.weight_store import Progress
from tightship.errors import FormatError, InputError
from tightship.graph import Constant, DType, Graph, Layer, element_count
from tightship.model import Model
from tightship.model.feeds import Array, made_up

FORMAT = "tightship.tuned.v1"
LAYOUTS = ("library", "blocked")
ROUNDS = 3
RUNS = 3
"""Timed runs in a round, after one that is not."""
WORTH = 0.98
"""Share of the table's time below which a candidate replaces the table's choice."""
SEED = 0
ELEMENTS_MAX = 8


@dataclass(frozen=True, slots=True)
class Choices:
    """JSON file of choices by key."""

    path: Path

    def read(self) -> dict[str, Choice]:
        """Read every choice; none if the file does not exist.

        Raises:
            FormatError: It is not a file of choices.
        """
        try:
            return _parsed(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"`{self.path}` is not a file of tuned choices ({error}); name another, or delete "
                "it to measure again."
            ) from None

    def store(self, key: str, choice: Choice) -> None:
        """Add a choice; the file is replaced whole or not at all.

        Raises:
            FormatError: It is not a file of choices.
            OSError: It cannot be written.
        """
        choices = {**self.read(), key: choice}
        entries = {
            key: {"layouts": choice.layouts, "stream_weights": choice.stream_weights}
            for key, choice in sorted(choices.items())
        }
        write_text(self.path, json.dumps({"format": FORMAT, "choices": entries}, indent=1) + "\n")


def _parsed(text: str) -> dict[str, Choice]:
    found = json.loads(text)
    if found["format"] != FORMAT:
        raise ValueError(f"its format is not `{FORMAT}`")
    return {key: _choice(**stored) for key, stored in found["choices"].items()}


def _choice(layouts: object, stream_weights: object) -> Choice:
    if layouts not in LAYOUTS or not isinstance(stream_weights, bool):
        raise ValueError("it has an unknown choice")
    return Choice(str(layouts), stream_weights)


def choice_key(graph: Graph, settings: Settings) -> str:
    """Digest what a choice depends on: structure and shapes, not the elements of weights."""
    if "onednn" not in settings.without:
        open_library()
    parts = (settings.threads, sorted(settings.without), sorted(library_key().items()))
    digest = hashlib.sha256(repr(parts).encode())
    for part in _structure(graph):
        digest.update(repr(part).encode())
    return digest.hexdigest()


def _structure(graph: Graph) -> Iterator[object]:
    yield graph.inputs, graph.outputs, len(graph.nodes)
    for value in graph.values.values():
        yield value.name, value.dtype, value.shape
    for name, constant in graph.constants.items():
        yield name, _constant(constant)
    for node in graph.nodes:
        yield node.domain, node.operator, node.version, node.inputs, node.outputs
        for name, attribute in node.attributes.items():
            if isinstance(attribute, Graph):
                yield name, tuple(_structure(attribute))
            elif isinstance(attribute, int | float | str | bytes | tuple):
                yield name, attribute
            elif isinstance(attribute, Layer):
                yield name, id(attribute)
            else:
                yield name, _constant(attribute)


def _constant(constant: Constant) -> tuple[object, ...]:
    """Return type and shape, and the elements if few, which may be shapes or bounds."""
    if constant.dtype is DType.STRING or element_count(constant.shape) > ELEMENTS_MAX:
        return constant.dtype, constant.shape
    return constant.dtype, constant.shape, constant.array().tobytes()


def candidates(
    usual: CompiledModel, prepare: Callable[[Choice | None], CompiledModel]
) -> dict[Choice, CompiledModel]:
    """Return the table's choice, then others with another program and no more memory."""
    lowered = usual.placement.lowered
    found = {Choice(lowered.layouts, stream_weights=True): usual}
    if "layouts" not in usual.key:
        return found
    left_out = usual.key.get("without", "").split(", ")
    forced = {"blocked_layouts", "library_layouts"} & set(left_out)
    for layouts in LAYOUTS[:1] if forced else LAYOUTS:
        for streams in (True,) if "stream_weights" in left_out else (True, False):
            choice = Choice(layouts, streams)
            if choice in found:
                continue
            other = prepare(choice)
            is_new = all(_calls(other) != _calls(known) for known in found.values())
            if is_new and other.plan.peak_bytes <= usual.plan.peak_bytes:
                found[choice] = other
    return found


def _calls(prepared: CompiledModel) -> list[object]:
    return [(s.implementation, s.reads, s.writes) for s in prepared.placement.lowered.steps]


def run_seconds(model: Model, inputs: Mapping[str, Array]) -> float:
    """Measure the seconds of a run."""
    start = time.perf_counter()
    model.run(inputs)
    return time.perf_counter() - start


def fastest(
    found: Mapping[Choice, CompiledModel],
    bounds: Bounds,
    progress: Progress | None = None,
    seconds: Callable[[Model, Mapping[str, Array]], float] = run_seconds,
) -> Choice:
    """Return the candidate of the least median time; the first unless another is clearly faster.

    One candidate is loaded at a time, alternately, so that measuring takes what the largest plan
    says.

    Raises:
        InputError: An input has no fixed shape, or holds text.
    """
    usual = next(iter(found))
    if len(found) == 1:
        return usual
    times: dict[Choice, list[float]] = {choice: [] for choice in found}
    for turn in range(ROUNDS):
        for position, (choice, prepared) in enumerate(found.items()):
            with Model(prepared, bounds) as model:
                inputs = _inputs(model)
                model.run(inputs)
                times[choice] += [seconds(model, inputs) for _ in range(RUNS)]
            if progress is not None:
                progress(turn * len(found) + position + 1, ROUNDS * len(found))
    return _least(times, usual)


def _least(times: Mapping[Choice, Sequence[float]], usual: Choice) -> Choice:
    medians = {choice: statistics.median(lap) for choice, lap in times.items()}
    best = min(medians, key=medians.__getitem__)
    return best if medians[best] < WORTH * medians[usual] else usual


def _inputs(model: Model) -> dict[str, Array]:
    random = np.random.Generator(np.random.PCG64(SEED))
    arrays: dict[str, Array] = {}
    for name, (dtype, shape) in model.input_types.items():
        if shape is None or dtype is DType.STRING:
            raise InputError(
                f"Input `{name}` of `{model.plan.model}` has no fixed type and shape to measure "
                "with; give its shape in `shapes`, or leave `tune` out."
            )
        arrays[name] = made_up(random, dtype, shape)
    return arrays
