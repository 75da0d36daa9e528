"""Entry point: a traced function of jax as a graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightship.errors import InputError
from tightship.frontend.named_lengths import NamedLengths, Shapes
from tightship.graph import Constant, Graph, Shape
from tightship.graph.absent import refuse_absent
from tightship.graph.constant import forget
from tightship.public_calls import public_call

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True, slots=True)
class Weights:
    """First arguments of a traced function, which are constants.

    Attributes:
        constants: Constants by name, in the order of the arguments.
        inputs: Names of the other arguments.
    """

    constants: Mapping[str, Constant]
    inputs: Sequence[str]


class JaxProgram:
    """Traced function; arrays that it captured stay in jax's memory."""

    def __init__(
        self,
        traced: "jax.stages.Traced",
        name: str = "traced function",
        weights: Weights | None = None,
        named: NamedLengths | None = None,
        again: "Callable[[Shapes], JaxProgram] | None" = None,
    ) -> None:
        """Translate the function.

        Args:
            traced: The function.
            name: Name of the model in reports.
            weights: Its first arguments, if they are the weights of a module.
            named: Shapes that it was traced with, and the names of open lengths.
            again: Function that traces it with other shapes.

        Raises:
            GraphError: A primitive has no translation.
        """
        from tightship.frontend.jax.translate import translated

        self.name = name
        held = () if weights is None else weights.constants.values()
        self._weights = frozenset(map(id, held))
        self._graph = translated(traced, weights)
        self._named, self._again = named, again

    @property
    def declared(self) -> dict[str, Shape | None]:
        """Shapes of the inputs, all of them fixed."""
        return {name: self._graph.values[name].shape for name in self._graph.inputs}

    @property
    def open_shapes(self) -> dict[str, Shape | None]:
        """Shapes of the inputs with the names of open lengths; empty if there are none."""
        named = self._named
        if named is None or not named.bound:
            return {}
        return {
            name: named.declared(name) if name in named.bound else shape
            for name, shape in self.declared.items()
        }

    def at(self, shapes: Mapping[str, Sequence[int]]) -> "JaxProgram":
        """Return the function traced with other shapes.

        Raises:
            GraphError, InputError: It cannot be traced with them.
        """
        assert self._again is not None, "a function that was traced by its caller"
        return self._again({name: tuple(shape) for name, shape in shapes.items()})

    def refuse_absent(self) -> None:
        """Check that the program can be run, not only planned.

        Raises:
            InputError: A weight has no elements.
        """
        refuse_absent(self._graph.constants.items())

    @property
    def weights(self) -> frozenset[int]:
        """Identities of the constants that are weights of a module."""
        return self._weights

    def forget(self) -> None:
        """Let go of arrays once all are packed, so that jax can free their memory."""
        forget(self._graph.constants.values())

    def graph(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Graph:
        """Return the function as a graph; `shapes` can only repeat those it was traced with.

        Raises:
            InputError: A shape is of an unknown input, or differs.
        """
        declared = self.declared
        for name, shape in (shapes or {}).items():
            if tuple(shape) != declared.get(name):
                names = ", ".join(f"`{n}` {list(s or ())}" for n, s in declared.items()) or "none"
                raise InputError(
                    f"The function was traced with the inputs {names}, but `{name}` {list(shape)} "
                    "was given; trace it with arrays of that shape."
                )
        return self._graph


@public_call
def read(traced: "jax.stages.Traced") -> Graph:
    """Convert a traced function of jax to a graph of operators of ONNX and of training.

    Inputs have the names of the function's arguments with their places in its trees, such as
    `params.layers.0.w`; outputs are `result` and places in it. Arrays that the function captured
    are constants that refer to jax's memory. Computed positions must lie within their axes: jax's
    treatment of others (to drop, clip or fill) is not supported.

    Args:
        traced: Result of `jax.jit(function).trace(...)`; the function may come from `jax.grad` or
            `jax.value_and_grad`.

    Raises:
        GraphError: A primitive has no translation; the message names it, the line of the user's
            source and a remedy.
    """
    return JaxProgram(traced).graph()
