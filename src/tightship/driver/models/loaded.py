"""Models that a driver has loaded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tightship._core import StopFlag
from tightship.driver.memory.mappings import Array
from tightship.driver.models.deferred_routines import DeferredRoutines
from tightship.driver.models.image_model import ImageModel, Images, LoadLike, image_model
from tightship.driver.models.open_named import OpenNamed
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.models.open_subgraph_sequence import OpenSubgraphSequence
from tightship.driver.models.subgraph_sequence import Limit
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.elements import end_type
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import failure
from tightship.errors import TightshipError
from tightship.graph import DType, Graph
from tightship.model import Model


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

    Args:
        found: Model.
        inputs: Indexes of inputs.
        outputs: Indexes of outputs.
        load: As for `image_model`.

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
