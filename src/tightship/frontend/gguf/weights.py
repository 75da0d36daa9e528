"""Vectors and matrices of a GGUF file as float32 values of a graph."""

from dataclasses import dataclass, field

from onnx import TensorProto

from tightship.errors import FormatError, GraphError
from tightship.frontend.gguf.nodes import Nodes
from tightship.frontend.gguf.parts import (
    BITS,
    BLOCK,
    PLAIN,
    TYPES,
    encoded_rows,
    integers_and_scales,
    plain,
)
from tightship.frontend.gguf.shards import Contents, Placed
from tightship.graph import Constant


@dataclass(slots=True)
class Weights:
    """Tensors of a file by name, and those that the graph has."""

    contents: Contents
    nodes: Nodes
    _written: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Name of the file in messages."""
        return self.contents.metadata.path

    def has(self, name: str) -> bool:
        """Whether the file has a tensor."""
        return name in self.contents.tensors

    def vector(self, name: str, length: int) -> str:
        """Return the value with a vector.

        Raises:
            FormatError: It is missing, or has another shape.
            GraphError: Its type is not supported.
        """
        if name not in self._written:
            placed = self._find(name, (length,))
            if placed.tensor.type.name not in PLAIN:
                raise self._refusal(placed, tuple(PLAIN))
            self._written[name] = self._wide(name, placed)
        return self._written[name]

    def rows(self, name: str) -> int:
        """Return the rows of a matrix.

        Raises:
            FormatError: It is missing, or not a matrix.
        """
        placed = self.contents.tensors.get(name)
        shape = () if placed is None else placed.tensor.shape
        if len(shape) != 2:
            raise FormatError(
                f"`{self.path}` has no matrix `{name}`; every model needs one. Convert the model "
                "again."
            )
        return shape[0]

    def matrix(self, name: str, rows: int, depth: int) -> str:
        """Return the value with a matrix, [rows, depth].

        Raises:
            FormatError: It is missing, or has another shape.
            GraphError: Its type is not supported.
        """
        if name not in self._written:
            self._written[name] = self._matrix(name, rows, depth)
        return self._written[name]

    def _matrix(self, name: str, rows: int, depth: int) -> str:
        placed = self._find(name, (rows, depth))
        kind = placed.tensor.type.name
        rows_as_stored = encoded_rows(placed)
        if rows_as_stored is not None:
            stored = self.nodes.constant(f"{name}.rows", rows_as_stored)
            return self.nodes("DequantizeRows", stored, rows=rows, depth=depth, type=kind)
        if kind in PLAIN:
            return self._wide(name, placed)
        if kind not in BITS:
            raise self._refusal(placed, TYPES)
        integers, scales = integers_and_scales(placed)
        return self.nodes(
            "DequantizeBlocks",
            self.nodes.constant(f"{name}.integers", integers),
            self.nodes.constant(f"{name}.scales", scales),
            rows=rows, depth=depth, bits=BITS[kind], block_size=BLOCK,
        )  # fmt: skip

    def product(self, x: str, name: str, rows: int, depth: int) -> str:
        """Write the product of rows by a matrix, [..., depth] to [..., rows].

        Raises:
            FormatError: The matrix is missing, or has another shape.
            GraphError: Its type is not supported.
        """
        matrix = self.matrix(name, rows, depth)
        return self.nodes("MatMul", x, self.nodes("Transpose", matrix, perm=[1, 0]))

    def stored(self, name: str) -> Constant:
        """Return the constant that the graph has by a name: a tensor's, or of a part of it."""
        placed = self.contents.tensors.get(name)
        if placed is not None:
            return plain(placed)
        stem, _, part = name.rpartition(".")
        if part == "rows":
            rows = encoded_rows(self.contents.tensors[stem])
            assert rows is not None, name
            return rows
        integers, scales = integers_and_scales(self.contents.tensors[stem])
        return integers if part == "integers" else scales

    def leave_out(self, prefix: str) -> None:
        """Take tensors whose names begin so as read: those of a layer that another stands for."""
        self._written.update({name: "" for name in self.contents.tensors
                              if name.startswith(prefix)})  # fmt: skip

    def refuse_unread(self, kind: str) -> None:
        """Refuse tensors that the graph has not got.

        Raises:
            GraphError: There is one.
        """
        for name in self.contents.tensors.keys() - self._written.keys():
            raise GraphError(
                f"`{self.path}` has the tensor `{name}`, which is not supported for the "
                f"architecture `{kind}`. Use a model without it."
            )

    def _wide(self, name: str, placed: Placed) -> str:
        value = self.nodes.constant(name, plain(placed))
        if placed.tensor.type.name == "F32":
            return value
        return self.nodes("Cast", value, to=TensorProto.FLOAT)

    def _find(self, name: str, shape: tuple[int, ...]) -> Placed:
        placed = self.contents.tensors.get(name)
        if placed is None:
            raise FormatError(f"`{self.path}` lacks the tensor `{name}`. Convert the model again.")
        if placed.tensor.shape != shape:
            raise FormatError(
                f"`{self.path}`: the tensor `{name}` has the shape {list(placed.tensor.shape)}; "
                f"the metadata says {list(shape)}. Convert the model again."
            )
        return placed

    def _refusal(self, placed: Placed, known: tuple[str, ...]) -> GraphError:
        tensor = placed.tensor
        return GraphError(
            f"`{self.path}`: the tensor `{tensor.name}` has the type {tensor.type.name}, which is "
            f"not supported; supported are {', '.join(known)}. Use a model in one of these."
        )
