"""Equation of a jaxpr that is being written."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax._src import source_info_util
from jax.extend.core import JaxprEqn
from numpy.typing import NDArray

from tightship.errors import GraphError
from tightship.frontend.writer import Operand, TranslationContext
from tightship.graph import DType, Fill, Inline

ADVICE = {
    "random_bits": "draw random numbers outside, and pass them in",
    "random_seed": "draw random numbers outside, and pass them in",
    "random_wrap": "draw random numbers outside, and pass them in",
    "threefry2x32": "draw random numbers outside, and pass them in",
    "pure_callback": "compute it before the function, and pass it in",
}


def place_of(equation: JaxprEqn) -> str:
    """Return the user's source line of an equation; empty for jax's own."""
    return str(source_info_util.summarize(equation.source_info))


def refused(equation: JaxprEqn, place: str, why: str) -> GraphError:
    """Return an error with the equation's primitive, source line and a remedy."""
    name = equation.primitive.name
    help_ = ADVICE.get(name, "write it with other operations, or leave it outside the function")
    return GraphError(f"`{name}` ({place}) {why}; {help_}.")


LOOKED_INTO_MAX = 4096
"""Most elements of a constant that a translation may read."""


@dataclass(frozen=True, slots=True)
class Call(TranslationContext):
    """Equation with operands in order, parameters by name, and its place in the user's source."""

    equation: JaxprEqn
    operands: tuple[Operand, ...]
    place: str

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self.equation.params[name]

    @property
    def operand(self) -> Operand:
        """First operand."""
        return self.operands[0]

    def known(self, operand: Operand) -> NDArray[Any] | None:
        """Return the elements of a small constant; None for other operands."""
        constant = self.writer.constants.get(operand.name)
        is_small = constant is not None and np.prod(constant.shape) <= LOOKED_INTO_MAX
        return constant.array() if constant is not None and is_small else None

    def is_zero(self, operand: Operand) -> bool:
        """Whether an operand is known to be all zeros."""
        constant = self.writer.constants.get(operand.name)
        if isinstance(constant, Fill | Inline):
            return not np.any(constant.value)
        return False

    def narrow(self, operand: Operand) -> Operand:
        """Undo an expansion of an operand, for operators that broadcast."""
        constant = self.writer.constants.get(operand.name)
        if isinstance(constant, Fill) and operand.rank:
            return self.held(np.array(constant.value))
        maker = self.writer.makers.get(operand.name)
        if maker is not None and maker.operator == "Expand":
            return self.writer.operand(maker.inputs[0])
        return operand

    def elementwise(self, operator: str, *operands: Operand, dtype: DType | None = None) -> Operand:
        """Write an elementwise operator of the first result's shape."""
        narrow = [self.narrow(each) for each in operands]
        shape = np.broadcast_shapes(*(each.shape for each in narrow))
        chosen = narrow if shape == self.shape else [operands[0], *narrow[1:]]
        return self.add(operator, (dtype or self.dtype, self.shape), *chosen)

    def permuted(self, operand: Operand, order: tuple[int, ...]) -> Operand:
        """Permute the axes of an operand, unless the order is the same."""
        maker = self.writer.makers.get(operand.name)
        if maker is not None and maker.operator == "Transpose":
            before = maker.attributes["perm"]
            assert isinstance(before, tuple)
            operand = self.writer.operand(maker.inputs[0])
            order = tuple(int(before[axis]) for axis in order)
        if order == tuple(range(operand.rank)):
            return operand
        shape = tuple(operand.shape[axis] for axis in order)
        return self.add("Transpose", (operand.dtype, shape), operand, perm=order)

    def only(self, found: tuple[Operand | None, ...]) -> Operand:
        """Return the one result that was kept."""
        return next(each for each in found if each is not None)

    def refuse(self, why: str) -> GraphError:
        """Return an error that explains why the equation has no translation."""
        return refused(self.equation, self.place, why)
