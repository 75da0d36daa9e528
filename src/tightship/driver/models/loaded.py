"""Models that a driver has loaded."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tightship._core import StopFlag
from tightship.driver.memory.mappings import Array
from tightship.driver.models.deferred_routines import DeferredRoutines
from tightship.driver.models.image_model import ImageModel, Images, LoadLike, image_model
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.models.open_subgraph_sequence import OpenSubgraphSequence, Rows
from tightship.driver.models.subgraph_sequence import Limit
from tightship.driver.protocol.replies import OutputShape
from tightship.driver.service.effects import Run, RunArgument
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.elements import dtype_of, end_type
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import failure, invalid
from tightship.errors import TightshipError
from tightship.graph import DType, Graph
from tightship.model import Model


class OpenNamed:
    """Model that also runs with shapes other than those it was loaded for.

    Attributes:
        model: Model with programs for some shapes.
        programs: The model alone.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.programs = (model,)
        self.close = model.close

    def at(self, inputs: Rows) -> tuple[Model, Rows]:
        """Return the model, and the dimensions of its outputs for inputs of these dimensions.

        Raises:
            TightshipError: As from `Model.output_shapes`.
        """
        model = self.model
        shapes = model.output_shapes(dict(zip(model.input_names, inputs, strict=True)))
        return model, tuple(shape or () for shape in shapes.values())


@dataclass(frozen=True, slots=True)
class Loaded:
    """Model with the types of its inputs and outputs, in order.

    Attributes:
        graph: Reads the graph again; None if that is not possible.
        late: Routines deferred until a run knows dimensions.
    """

    model: Model | ImageModel | OpenOperands | OpenSubgraphSequence | OpenNamed
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]
    graph: Callable[[], Graph] | None = None
    late: DeferredRoutines | None = None

    @property
    def programs(self) -> tuple[Model, ...]:
        """All programs: several with loops, branches, or images in two layouts."""
        own = (self.model,) if isinstance(self.model, Model) else self.model.programs
        return own if self.late is None else own + self.late.programs

    @property
    def weights_bytes(self) -> int:
        """Size of the packed weights; images in two layouts share them."""
        programs = self.programs[:1] if isinstance(self.model, ImageModel) else self.programs
        return sum(program.memory_stats().weights_bytes for program in programs)

    @property
    def is_open(self) -> bool:
        """Whether a request determines dimensions, so that `at` returns what can be run."""
        return isinstance(self.model, OpenOperands | OpenNamed)

    def at(self, inputs: Sequence[Dimensions]) -> "Loaded":
        """Return the model for inputs of these dimensions.

        Raises:
            DriverError: INVALID_ARGUMENT, GENERAL_FAILURE: it cannot be translated for them.
            TightshipError: The engine refuses it.
        """
        assert isinstance(self.model, OpenOperands | OpenNamed)
        model, outputs = self.model.at(tuple(inputs))
        return Loaded(model, _known(self.inputs, inputs), _known(self.outputs, outputs))

    def run(
        self,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        stop: StopFlag,
        loop_timeout_ns: int,
    ) -> dict[str, Array]:
        """Run once; arguments and errors as for `Model.run` and `SubgraphSequence.run`."""
        assert not isinstance(self.model, OpenOperands | OpenNamed)
        if isinstance(self.model, Model):
            return self.model.run(inputs, outputs=outputs, stop=stop)
        return self.model.run(inputs, outputs, Limit(stop, loop_timeout_ns))

    def close(self) -> None:
        """Wait for current runs and free all memory."""
        self.model.close()
        if self.late is not None:
            self.late.close()


def loaded(model: Model) -> Loaded:
    """Return a model with its types in the driver.

    Raises:
        DriverError: GENERAL_FAILURE: the driver lacks the type of an input or output.
    """
    plan = model.plan
    inputs = [(name, *model.input_types[name]) for name in model.input_names]
    outputs = [(name, *model.output_types[name]) for name in model.output_names]
    types = _types(plan.model, inputs), _types(plan.model, outputs)
    rows = [model.open_lengths[name] for name in model.input_names]
    if not any(map(any, rows)):
        return Loaded(model, *types)
    known = [_opened(each, row) for each, row in zip(types[0], rows, strict=True)]
    unknown = [_opened(each, [True] * len(each.dimensions)) for each in types[1]]
    return Loaded(OpenNamed(model), tuple(known), tuple(unknown))


def with_images(
    found: Loaded, inputs: Sequence[int], outputs: Sequence[int], load: LoadLike
) -> Loaded | None:
    """Prepare a model for some images with channels last; None if that is impossible or useless.

    Raises:
        MemoryError: The second program does not fit.
    """
    model = found.model
    if found.graph is None or not isinstance(model, (Model, ImageModel)):
        return None
    images = Images(
        frozenset(model.input_names[index] for index in inputs),
        frozenset(model.output_names[index] for index in outputs),
    )
    if isinstance(model, ImageModel) and images | model.images == model.images:
        return found
    try:
        made = image_model(model, found.graph(), images, load)
    except MemoryError:
        raise
    except TightshipError:  # the first program suffices
        return None
    return None if made is None else replace(found, model=made)


def _opened(value: ValueType, axes: Sequence[bool]) -> ValueType:
    row = zip(value.dimensions, axes, strict=True)
    return replace(value, dimensions=tuple(0 if is_open else length for length, is_open in row))


def _known(types: Sequence[ValueType], rows: Sequence[Dimensions]) -> tuple[ValueType, ...]:
    return tuple(replace(each, dimensions=row) for each, row in zip(types, rows, strict=True))


def _types(
    model: str, row: Sequence[tuple[str, DType, tuple[int, ...] | None]]
) -> tuple[ValueType, ...]:
    types = []
    for name, element, shape in row:
        if shape is None:
            raise failure(f"The shape of `{name}` of `{model}` depends on data; it must not.")
        types.append(end_type(element.numpy, shape, name))
    return tuple(types)


def fitted(found: Loaded, asked: Run) -> tuple[Loaded, Run]:
    """Return the model for a request's dimensions, and the request with those of its outputs.

    Raises:
        DriverError: As from `Loaded.at`; INVALID_ARGUMENT: the request contradicts the dimensions
            of an output.
        TightshipError: The engine refuses the model.
    """
    if not found.is_open:
        return found, asked
    known = found.at([argument.dimensions for argument in asked.inputs])
    outputs = []
    for index, (argument, value) in enumerate(zip(asked.outputs, known.outputs, strict=True)):
        dimensions = combine(argument.dimensions, value.dimensions)
        if dimensions is None:
            raise invalid(
                f"Output {index} is given dimensions {list(argument.dimensions)}; the inputs "
                f"determine {list(value.dimensions)}."
            )
        outputs.append(replace(argument, dimensions=dimensions))
    return known, replace(asked, outputs=tuple(outputs))


def shortage(found: Loaded, asked: Run) -> tuple[OutputShape, ...]:
    """Return the shapes of the outputs if the memory of one is known to be too small; else ().

    Args:
        found: Model from `fitted`.
        asked: Request from `fitted`.
    """
    if not all(is_specified(each.dimensions, is_scalar=each.is_scalar) for each in found.outputs):
        return ()
    shapes = tuple(
        OutputShape(value.dimensions, _fits(argument, value))
        for argument, value in zip(asked.outputs, found.outputs, strict=True)
    )
    return () if all(shape.is_sufficient for shape in shapes) else shapes


def _fits(argument: RunArgument, value: ValueType) -> bool:
    size_bytes = dtype_of(value).itemsize * math.prod(value.dimensions)
    if argument.token:
        return size_bytes <= argument.room_bytes
    if argument.pool is not None and argument.pool.image is not None:
        return size_bytes == argument.pool.extent.content_bytes
    return argument.location is None or size_bytes <= argument.location.length_bytes
