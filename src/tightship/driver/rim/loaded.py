"""A model that a driver has loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tightship._core import StopFlag
from tightship.driver.rim.chain import Chain, Limit
from tightship.driver.rim.mappings import Array
from tightship.driver.rules.elements import value_type
from tightship.driver.rules.operand_type import ValueType
from tightship.driver.rules.status import failure
from tightship.graph import DType
from tightship.model import Model


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with the types of what it takes and gives, in order."""

    model: Model | Chain
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]

    @property
    def programs(self) -> tuple[Model, ...]:
        """What it consists of: more than one where there are loops or branches."""
        return (self.model,) if isinstance(self.model, Model) else self.model.programs

    def run(
        self,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        stop: StopFlag,
        loop_timeout_ns: int,
    ) -> dict[str, Array]:
        """Run it once; arguments and errors as for `Model.run` and `Chain.run`."""
        if isinstance(self.model, Model):
            return self.model.run(inputs, outputs=outputs, stop=stop)
        return self.model.run(inputs, outputs, Limit(stop, loop_timeout_ns))


def loaded(model: Model) -> Loaded:
    """A model as the driver offers it.

    Raises:
        DriverError: GENERAL_FAILURE: an input or output is of a type that NNAPI does not have.
    """
    plan = model.plan
    inputs = [(name, *model.input_types[name]) for name in model.input_names]
    outputs = [(name, *model.output_types[name]) for name in model.output_names]
    return Loaded(model, _types(plan.model, inputs), _types(plan.model, outputs))


def _types(
    model: str, row: Sequence[tuple[str, DType, tuple[int, ...] | None]]
) -> tuple[ValueType, ...]:
    types = []
    for name, element, shape in row:
        if shape is None:
            raise failure(f"The shape of `{name}` of `{model}` depends on data.")
        types.append(value_type(element.numpy, shape, name))
    return tuple(types)
