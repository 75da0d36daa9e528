"""The entry: a program of `torch.export` as a graph."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tightship.errors import InputError
from tightship.graph import Graph, Shape

if TYPE_CHECKING:
    import torch


class TorchProgram:
    """An exported program in operators of core ATen; its parameters stay where torch has them."""

    def __init__(self, program: "torch.export.ExportedProgram") -> None:
        """Decompose the program; it is left as it is.

        Raises:
            GraphError: It has an operator that has no translation.
            InputError: A parameter is not on the processor, or an input has an open length.
        """
        from tightship.frontend.torch.translate import translated

        self._graph = translated(program)

    @property
    def declared(self) -> dict[str, Shape | None]:
        """Shapes of the inputs, all of them fixed."""
        return {name: self._graph.values[name].shape for name in self._graph.inputs}

    def graph(
        self,
        shapes: Mapping[str, Sequence[int]] | None = None,
        *,
        allow_symbolic: bool = False,  # noqa: ARG002 - no length is open
    ) -> Graph:
        """The program as a graph; `shapes` can only repeat what it was exported with.

        Raises:
            InputError: A shape is for no input, or differs.
        """
        declared = self.declared
        for name, shape in (shapes or {}).items():
            if name not in declared:
                names = ", ".join(f"`{other}`" for other in declared) or "none"
                raise InputError(f"The program has no input `{name}`; its inputs are: {names}.")
            if tuple(shape) != declared[name]:
                raise InputError(
                    f"Input `{name}` was exported with the shape {list(declared[name] or ())}, but "
                    f"{list(shape)} was given; export the model with inputs of that shape."
                )
        return self._graph


def read(program: "torch.export.ExportedProgram") -> Graph:
    """A program of `torch.export` as a graph of ONNX's operators.

    Parameters and buffers are constants that refer to torch's memory, which must not change while
    the graph is in use. A buffer that the program changes is an input of its name; what becomes of
    it, or of an input that is changed, is an output `NAME.updated` after the program's own.

    Args:
        program: What `torch.export.export` made of a module, with shapes that are fixed.

    Raises:
        GraphError: An operator has no translation; names the node, the operator, the line of the
            user's source, and what to do.
        InputError: A parameter is not on the processor, or an input has an open length.
    """
    return TorchProgram(program).graph()
