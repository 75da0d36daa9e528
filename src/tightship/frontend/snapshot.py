"""Opened modules without their weights and library, for another process to plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from tightship.frontend.modules import Program
from tightship.graph import Constant, Fill, Graph, Inline, Mapped, MappedFile, Shape
from tightship.graph.absent import absent, refuse_absent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Graph of a module for fixed shapes; its weights have no elements, so that it is small.

    Attributes:
        name: Name of the module in reports.
        whole: The graph.
    """

    name: str
    whole: Graph

    @property
    def declared(self) -> dict[str, Shape | None]:
        """Shapes of the inputs, all of them fixed."""
        return {name: self.whole.values[name].shape for name in self.whole.inputs}

    def refuse_absent(self) -> None:
        """Check that the module can be run, not only planned.

        Raises:
            InputError: A weight has no elements.
        """
        refuse_absent(self.whole.constants.items())

    def graph(self, _: Mapping[str, Sequence[int]] | None = None) -> Graph:
        """Return the graph, which has one shape for each input."""
        return self.whole


def snapshot(program: Program, shapes: Mapping[str, Sequence[int] | int] | None = None) -> Snapshot:
    """Take a snapshot of an opened module.

    Args:
        program: The module.
        shapes: Shapes of inputs with open lengths.
    """
    graph = program.graph(cast("Mapping[str, Sequence[int]] | None", shapes))
    weights = program.weights
    held = {
        name: light(name, constant, is_weight=id(constant) in weights)
        for name, constant in graph.constants.items()
    }
    return Snapshot(program.name, replace(graph, constants=held))


def light(name: str, constant: Constant, *, is_weight: bool) -> Constant:
    """Return a constant that can be sent: masks and positions with elements, as plans need them.

    Args:
        name: Name of the constant in errors.
        constant: The constant.
        is_weight: Whether to leave its elements out.
    """
    if isinstance(constant, Inline | Fill):
        return constant
    if is_weight:
        return absent(name, constant.dtype, constant.shape, 0)
    data = constant.array().tobytes()
    file = MappedFile.of_bytes(data, Path(f"<{name}>"))
    return Mapped(file, 0, constant.dtype, constant.shape)
