"""Entry point: a program of `torch.export` as a graph."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from zipfile import BadZipFile

from tightship.errors import FormatError, InputError
from tightship.graph import Constant, Graph, Shape
from tightship.graph.absent import refuse_absent
from tightship.graph.constant import forget
from tightship.graph.length import Trace
from tightship.graph.open_graphs import SymbolicGraph
from tightship.public_calls import public_call

if TYPE_CHECKING:
    import torch

    from tightship.frontend.torch.arithmetic import Lengths


class TorchProgram:
    """Exported program in core ATen; its parameters stay in torch's memory."""

    def __init__(
        self, program: "torch.export.ExportedProgram", name: str = "exported program"
    ) -> None:
        """Decompose a copy of the program.

        Args:
            program: The program.
            name: Name of the model in reports.

        Raises:
            GraphError: An operator has no translation.
            InputError: A parameter is not in the processor's memory, or an input is an open number.
        """
        from tightship.frontend.torch.decompose import decomposed
        from tightship.frontend.torch.lengths import OpenLengths

        _refuse_open_numbers(program)
        self.name = name
        self._lengths = OpenLengths.of(program)
        self._program = decomposed(program)
        self._held: dict[str, Constant] = {}
        self._fixed = None if self._lengths.is_any else self._translated({})

    @property
    def declared(self) -> dict[str, Shape | None]:
        """Shapes of the inputs; open lengths by their names in `dynamic_shapes`."""
        if self._fixed is None:
            return {name: self._lengths.declared(name) for name in self._lengths.inputs}
        return {name: self._fixed.values[name].shape for name in self._fixed.inputs}

    def graph(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Graph:
        """Return the program as a graph for these shapes.

        Fixed lengths can only be repeated; each open one must be given by at least one input.

        Raises:
            GraphError: A shape depends on data.
            InputError: A shape is of an unknown input, differs, or leaves a length open.
        """
        if self._fixed is None:
            return self._translated(self._lengths.bound(shapes or {}))
        declared = self.declared
        for name, shape in (shapes or {}).items():
            if name not in declared:
                names = ", ".join(f"`{other}`" for other in declared) or "none"
                raise InputError(f"The program has no input `{name}`; its inputs are: {names}.")
            if tuple(shape) != declared[name]:
                raise InputError(
                    f"Input `{name}` was exported with the shape {list(declared[name] or ())}, but "
                    f"{list(shape)} was given; export the model with inputs of that shape, or "
                    "with `dynamic_shapes`."
                )
        return self._fixed

    def refuse_absent(self) -> None:
        """Check that the program can be run, not only planned.

        Raises:
            InputError: A parameter or buffer has no elements.
        """
        from tightship.frontend.torch.tensor import constant_of, has_elements

        held = {**self._program.state_dict, **self._program.constants}
        tensors = {name: each for name, each in held.items() if hasattr(each, "is_meta")}
        refuse_absent(
            (name, constant_of(tensor, name))
            for name, tensor in tensors.items()
            if not has_elements(tensor)
        )

    @property
    def weights(self) -> frozenset[int]:
        """Identities of the constants that are parameters and buffers."""
        return frozenset(map(id, self._held.values()))

    def forget(self) -> None:
        """Let go of parameters once all are packed, so that torch can free their memory."""
        constants = () if self._fixed is None else self._fixed.constants.values()
        forget((*self._held.values(), *constants))

    def followed(self, shapes: Mapping[str, Sequence[int]]) -> SymbolicGraph | None:
        """Return the program as a graph for these shapes that is valid for others too.

        None if a translation does not support a symbolic length.

        Raises:
            GraphError, InputError: As from `graph`.
        """
        trace = Trace()
        lengths = {
            symbol: trace.symbol(str(symbol), value)
            for symbol, value in self._lengths.bound(shapes).items()
        }
        try:
            graph = self._translated(lengths)
        except TypeError:  # an operation that requires a Python integer
            return None
        return SymbolicGraph(graph, trace, self._symbols)

    def _symbols(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        return {str(symbol): value for symbol, value in self._lengths.bound(shapes).items()}

    def _translated(self, lengths: "Lengths") -> Graph:
        from tightship.frontend.torch.translate import Translator

        return Translator(self._program, lengths=lengths, held=self._held).graph()


@public_call
def read(
    program: "torch.export.ExportedProgram", shapes: Mapping[str, Sequence[int]] | None = None
) -> Graph:
    """Convert a program of `torch.export` to a graph of ONNX's operators.

    Parameters and buffers are constants that refer to torch's memory, which must not change while
    the graph is in use. A buffer that the program changes is an input of its name; the new value of
    such a buffer or input is an output `NAME.updated` after the program's own outputs.

    Args:
        program: Result of `torch.export.export`.
        shapes: Shapes of inputs in which `dynamic_shapes` left lengths open.

    Raises:
        GraphError: An operator has no translation; the message names node, operator, the line of
            the user's source and a remedy.
        InputError: A parameter is not in the processor's memory, or a shape does not fit.
    """
    return TorchProgram(program).graph(shapes)


@public_call
def open_program(path: str | os.PathLike[str]) -> TorchProgram:
    """Open a file that `torch.export.save` wrote.

    Open lengths have the names that torch gives them, because the file has no others.

    Raises:
        FormatError: It is not such a file.
        GraphError, InputError: As from `TorchProgram`; InputError also if torch is not installed.
        OSError: The file does not exist or cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        export = _export()
        try:
            program = export.load(file)
        except (BadZipFile, RuntimeError, ValueError, KeyError) as error:
            why = str(error).splitlines()[0]
            raise FormatError(
                f"`{path}` is not what `torch.export.save` writes, which its suffix says: {why}."
            ) from error
    return TorchProgram(program)


def _export() -> ModuleType:
    try:
        from torch import export
    except ModuleNotFoundError as error:
        raise InputError(
            f"Programs of torch are read with the package `{error.name}`, which is not installed; "
            "pip install 'tightship[torch]', or export the model as ONNX."
        ) from None
    found: ModuleType = export
    return found


def _refuse_open_numbers(program: "torch.export.ExportedProgram") -> None:
    import torch

    for node in program.graph.find_nodes(op="placeholder"):
        if isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat):
            raise InputError(
                f"Input `{node.name}` is an open number; export the model with it fixed, once for "
                "each of its values."
            )
