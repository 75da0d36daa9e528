"""Peaks of a model against the lengths that it leaves open, and the largest within a limit.

Each peak is that of a plan for these very lengths; nothing is loaded, and no formula is fitted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from tightship.brief import brief
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings, name_of, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library
from tightship.engine.lower.pipeline import check_passes
from tightship.errors import GraphError, InputError
from tightship.frontend.modules import opened
from tightship.graph import Shape
from tightship.graph.length_expression import evaluate, names_in
from tightship.loading.first_shapes import shapes_of
from tightship.loading.input_shapes import Given
from tightship.loading.opening import OpenedModel, is_open, open_model, shapes_for
from tightship.loading.settings import settings_of
from tightship.loading.unprepared import variants_of
from tightship.quantity import parse_bytes

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import ModelSource
    from tightship.frontend.jax import JaxProgram

__all__ = ["LengthPeaks", "OpenLengths"]

Prepare = Callable[[Mapping[str, tuple[int, ...]]], CompiledModel]
"""Function that plans a model for shapes of its inputs."""
FACTORS = (1, 2, 4, 8, 16)
"""Multiples of a length that peaks are shown for."""
LENGTH_MAX = 1 << 24
"""Largest length that a search tries."""


@brief
@dataclass(frozen=True, slots=True)
class LengthPeaks:
    """Peaks of a model against one open length, with the others as they are.

    Attributes:
        name: Name of the dimension.
        length: Length that the model is planned for.
        peaks: Lengths in rising order, each with the bytes of its peak.
    """

    name: str
    length: int
    peaks: tuple[tuple[int, int], ...]

    @property
    def growth_bytes(self) -> int:
        """Bytes that the peak grows by for as much of the length again; 0 if it cannot.

        The mean over the first two lengths.
        """
        if len(self.peaks) < 2:
            return 0
        (length, size), (longer, larger) = self.peaks[:2]
        return (larger - size) * length // (longer - length)


@brief
@dataclass(frozen=True, slots=True)
class OpenLengths:
    """Model that leaves lengths open, opened once to be planned for many of them.

    Attributes:
        lengths: Open lengths by name, as the model is planned for.
        shapes: Shapes of the inputs for these.
        are_chosen: Whether some lengths were chosen, as the caller gave none for them.
    """

    lengths: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    are_chosen: bool
    _declared: Mapping[str, Shape | None]
    _prepare: Prepare
    _known: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: "ModelSource",
        shapes: Mapping[str, Sequence[int | str] | int] | None = None,
        threads: int = 1,
        *,
        example_inputs: object = None,
        workers: int | None = None,
        workers_memory: str | int | None = None,
    ) -> "OpenLengths | None":
        """Open a model that is not prepared; None if it leaves no length open by a name.

        Lengths that are not given are chosen: the first of a list that the model can be planned
        for.

        Args:
            model: Any model of `tightship.plan` that is not prepared.
            shapes: Shapes by input and lengths by dimension, as for `tightship.plan`; for a module
                or function, texts in them name the open lengths. jax traces it for each length.
            threads: Threads of each kernel.
            example_inputs: Arguments of a module, as for `tightship.plan`.
            workers: Steps that run at once, as for `tightship.plan`.
            workers_memory: Most that the arena may take beyond that for one worker.

        Raises:
            FormatError: The model cannot be read.
            GraphError: An operator of a module has no translation.
            InputError: The shapes do not fit, or none of those tried fits the model.
        """
        settings = settings_of({}, threads, (), (workers, workers_memory), None, {})
        source, given = opened(model, example_inputs, shapes) or (model, shapes)
        return cls._of(source, cast("Given | None", given), settings)

    @classmethod
    def _of(
        cls, model: "ModelSource", shapes: Given | None, settings: Settings
    ) -> "OpenLengths | None":
        """Open a model as `of` does; programs depend on `settings` besides shapes."""
        check_passes(settings.without)
        open_library()
        source = open_model(model)
        opened_for = _planner(source, name_of(model), settings)
        if opened_for is None:
            return None
        declared, make = opened_for
        if is_open(source.declared):
            given: Given = shapes_for(source, shapes) or {}
        else:
            given = cast("Given", source.declared)  # as jax traced it
        for each in shapes_of(declared, given):
            is_chosen = not is_given(declared, given)
            found = cls(_lengths(declared, each), each, is_chosen, declared, make)
            if not found.lengths:
                return None
            try:
                found._plan()
            except (GraphError, InputError) as error:
                refused = error
            else:
                return found
        raise InputError(f"No lengths that were tried fit the model; give its shapes. {refused}")

    @property
    def step_count(self) -> int:
        """Steps of the program for the lengths as they are."""
        return len(self._plan().placement.lowered.steps)

    def _plan(self, name: str = "", length: int = 0) -> CompiledModel:
        return self._prepare(self._shapes(name, length))

    def peak_bytes(self, name: str = "", length: int = 0) -> int:
        """Return the peak of a plan with one length changed, or as it is.

        Args:
            name: Name of the dimension; empty for none.
            length: Its other length.

        Raises:
            GraphError, InputError: The model cannot be run with it.
        """
        known = self._known.get((name, length))
        if known is None:
            made = self._plan(name, length)
            placed = made.placement
            known = placed.weights_bytes + placed.arena_bytes + placed.io_bytes + made.runtime_bytes
            self._known[name, length] = known
        return known

    def peaks(self, name: str, factors: Sequence[int] = FACTORS) -> LengthPeaks:
        """Return peaks against one length; they end where the model cannot be run.

        Args:
            name: Name of the dimension.
            factors: Rising multiples of its length.

        Raises:
            InputError: The model has no open length of this name.
        """
        self._check(name)
        found = []
        for factor in factors:
            length = max(self.lengths[name], 1) * factor
            try:
                found.append((length, self.peak_bytes(name, length)))
            except (GraphError, InputError):
                break
        return LengthPeaks(name, self.lengths[name], tuple(found))

    def largest(self, name: str, limit: str | int) -> int:
        """Return the largest length whose peak a limit holds; 0 if it holds none.

        A larger length is assumed to need no less.

        Args:
            name: Name of the dimension; the others stay.
            limit: Most bytes of the peak, as `"512MiB"`.

        Raises:
            InputError: The model has no open length of this name, or the limit is not
                a number of bytes.
        """
        self._check(name)
        limit_bytes = parse_bytes(limit, "limit")
        low, high = 0, 1
        while high <= LENGTH_MAX and self._fits(name, high, limit_bytes):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(name, middle, limit_bytes):
                low = middle
            else:
                high = middle
        return low

    def _fits(self, name: str, length: int, limit_bytes: int) -> bool:
        try:
            return self.peak_bytes(name, length) <= limit_bytes
        except (GraphError, InputError):
            return False

    def _check(self, name: str) -> None:
        if name not in self.lengths:
            names = ", ".join(f"`{each}`" for each in self.lengths)
            raise InputError(f"The model has no open length `{name}`; it has {names}.")

    def shapes_at(self, name: str, length: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs with one length changed, and those that follow from it.

        Args:
            name: Name of the dimension.
            length: Its other length.

        Raises:
            InputError: The model has no open length of this name.
        """
        self._check(name)
        return self._shapes(name, length)

    def _shapes(self, name: str, length: int) -> dict[str, tuple[int, ...]]:
        lengths = {**self.lengths, **({name: length} if name else {})}
        return {
            each: _evaluated(self._declared[each], shape, lengths)
            for each, shape in self.shapes.items()
        }


def _planner(
    source: OpenedModel, name: str, settings: Settings
) -> tuple[Mapping[str, Shape | None], Prepare] | None:
    """Return the shapes with the names of open lengths, and a function that plans for others.

    None if no length is open.
    """
    variants = variants_of(source, name, settings, Bounds(1))
    if variants is not None:
        return source.declared, variants.prepare
    program = cast("JaxProgram", source)
    if not getattr(source, "open_shapes", None):
        return None

    def traced(shapes: Mapping[str, tuple[int, ...]]) -> CompiledModel:
        return prepare(program.at(shapes).graph(), name, replace(settings, shapes=shapes))

    return program.open_shapes, traced


def is_given(declared: Mapping[str, Shape | None], given: Mapping[str, object]) -> bool:
    """Whether the given shapes leave no length of an input open."""
    return not is_open({name: shape for name, shape in declared.items() if name not in given})


def _evaluated(
    declared: Shape | None, shape: tuple[int, ...], lengths: Mapping[str, int]
) -> tuple[int, ...]:
    """Return a shape for other lengths; dimensions without a name stay as they are."""
    found = []
    for wanted, length in zip(declared or shape, shape, strict=True):
        value = evaluate(wanted, lengths) if isinstance(wanted, str) else None
        found.append(length if value is None else value)
    return tuple(found)


def _lengths(
    declared: Mapping[str, Shape | None], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """Return the lengths of named dimensions, in the order in which inputs have them."""
    found: dict[str, int] = {}
    for name, shape in shapes.items():
        for wanted, length in zip(declared.get(name) or (), shape, strict=False):
            if isinstance(wanted, str) and names_in(wanted) == {wanted}:
                found.setdefault(wanted, length)
    return found
