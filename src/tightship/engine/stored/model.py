"""Opened prepared model: what it was made for, its plans, and its programs ready to run."""

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import Key, key_of
from tightship.engine.compile.shape_specializer import GraphSource, InputShapes
from tightship.engine.library import THREADS_MAX, library_threads
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.plan.placement import memory_plan
from tightship.engine.program.program import PackedWeight, Space
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.stored import fields
from tightship.engine.stored.bounds import check_bounds
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.container import PAGE_BYTES, damaged, open_container
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.read_program import Made, StoredProgram, read_program
from tightship.engine.stored.reconstruct import reconstruct
from tightship.engine.weights.weight_store import PackedCopy
from tightship.errors import InputError, PlanError
from tightship.graph import DType, Shape
from tightship.planner import verify

SHOWN_MAX = 8
"""Most sets of shapes that a message lists."""
MEMBERS = (
    "model", "version", "library", "threads", "without", "key", "weights", "programs", "layouts",
    "primitives", "kernels",
)  # fmt: skip

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Unread:
    """Constant of a stored weight, of which only the packed bytes exist."""

    shape: tuple[int, ...]
    dtype: DType = DType.UINT8

    def array(self) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        """Fail, because stored weights are never packed anew."""
        raise AssertionError("a prepared model has its weights packed")

    def release(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class MappedBacking:
    """Bytes of a file, mapped read-only and shared by all processes that map it."""

    content: Bytes

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(self.content.ctypes.data)

    def array(self) -> Bytes:
        """Return the bytes, which keep the mapping alive."""
        return self.content


class StoredModel:
    """Prepared model in a file whose header and program section have the right checksums.

    Attributes:
        name: Name of the model in reports.
        compatibility: Environment that its programs need.
        copies: Packed weights.
        keys: Input shapes of each program.
        steps: What sessions have to know of the programs, as JSON values; None if there are none.
    """

    def __init__(self, path: str | PathLike[str], base: Sequence[PackedCopy] = ()) -> None:
        """Map the file.

        Args:
            path: Path of the file.
            base: Weights of another file over which the programs were made.

        Raises:
            FormatError: The file is not a prepared model, or is damaged.
            OSError: The file cannot be read.
        """
        self._path = os.fspath(path)
        self._container = open_container(self._path)
        self.copies = tuple(base)
        with self._reading():
            self._read(json.loads(self._container.text))

    def command(
        self,
        keys: Sequence[Key],
        *,
        threads: int | None = None,
        without: Collection[str] | None = None,
    ) -> str:
        """Word the command that makes the file again for these sets of input shapes.

        Threads and omitted passes default to those of the file.
        """
        count = self.compatibility.threads if threads is None else threads
        left_out = self.compatibility.without if without is None else without
        shapes = [
            f"--shape {name}={'x'.join(map(str, shape))}" for key in keys for name, shape in key
        ]
        options = [
            *([*shapes[:SHOWN_MAX], "...", shapes[-1]] if len(shapes) > SHOWN_MAX + 1 else shapes),
            *([f"--threads {count}"] if count != 1 else []),
            *[f"--without {name}" for name in left_out],
        ]
        return " ".join(["tightship prepare", self.name, "-o", self._path, *options])

    @property
    def checksum(self) -> str:
        """Checksum of the header, which covers the program section and has that of each weight."""
        return self._container.checksum

    def _read(self, text: object) -> None:
        self.steps = text.pop("steps", None) if isinstance(text, dict) else None
        values = dict(zip(MEMBERS, fields.record(text, *MEMBERS), strict=True))
        self.name = fields.text(values["model"])
        self.compatibility = Compatibility(
            fields.text(values["version"]),
            fields.texts(values["library"]),
            fields.integer(values["threads"], 1, THREADS_MAX),
            tuple(fields.each(values["without"], fields.text)),
        )
        self._key = fields.texts(values["key"])
        room = MappedBacking(np.frombuffer(self._container.weights(), np.uint8))
        self._checksums: list[int] = []
        self.copies += tuple([self._copy(row, room) for row in fields.items(values["weights"])])
        self._recipes = [fields.items(values[name]) for name in MEMBERS[-3:]]
        programs = [fields.record(each, "shapes", "program")
                    for each in fields.items(values["programs"])]  # fmt: skip
        self._programs = [program for _, program in programs]
        self.keys = tuple([_key(shapes) for shapes, _ in programs])
        if not self.compatibility.needs_library and any(self._recipes[:2]):
            raise MalformedError("it has layouts or primitives of a library that it does not need")
        if not self.keys or len(set(self.keys)) < len(self.keys):
            raise MalformedError("its programs are none, or not for shapes of their own")

    def _copy(self, row: object, room: MappedBacking) -> PackedCopy:
        name, offset, size, checksum = fields.items(row, 4)
        start = fields.integer(offset) - PAGE_BYTES
        count = fields.integer(size)
        if start < 0 or start % ALIGNMENT or start + count > len(room.content):
            raise MalformedError(f"a weight at {start} of {count} bytes is not among the weights")
        self._checksums.append(fields.integer(checksum))
        return PackedCopy(PackedWeight(fields.text(name), Unread((count,)), count), room, start)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of reading a program into an error that calls the file damaged."""
        try:
            yield
        except (MalformedError, PlanError, RecursionError, json.JSONDecodeError) as error:
            raise damaged(self._path, str(error).rstrip(".")) from None
        except UnicodeDecodeError:
            raise damaged(self._path, "its text is not UTF-8") from None

    def plan(self, index: int = 0) -> MemoryPlan:
        """Return the stored plan of a program.

        Raises:
            FormatError: The file is damaged.
        """
        return self._stated(self._program(index, None))

    def _stated(self, stored: StoredProgram) -> MemoryPlan:
        placement, strategies = stored.placement, stored.strategies
        key = self._key | {"weights": "mapped from the prepared model"}
        return memory_plan(placement, self.name, stored.runtime_bytes, key, strategies)

    def prepared(self, index: int) -> CompiledModel:
        """Return a program with its kernels reconstructed, ready to be built.

        Raises:
            FormatError: The file is damaged, or stale: the library chooses another implementation
                here.
        """
        with self._reading():
            with library_threads(self.compatibility.threads):
                stored = self._program(index, reconstruct(self._container, self._recipes))
            check_bounds(stored.placement)
        if key_of(stored.placement.lowered) != self.keys[index]:
            raise damaged(self._path, "a program is for other shapes than it says")
        return CompiledModel(stored.placement, self.name, 0, self._key, self._stated(stored))

    def output_shapes(self, index: int) -> dict[str, tuple[int, ...] | None]:
        """Return the shapes of a program's outputs; None if they depend on data.

        Raises:
            FormatError: The file is damaged.
        """
        outputs = self._program(index, None).placement.lowered.outputs
        return {
            name: None if operand.space is Space.OBJECT else operand.shape
            for name, operand in outputs.items()
        }

    def input_types(self, index: int) -> dict[str, DType]:
        """Return the element types of a program's inputs.

        Raises:
            FormatError: The file is damaged.
        """
        inputs = self._program(index, None).placement.lowered.inputs
        return {name: operand.dtype for name, operand in inputs.items()}

    def _program(self, index: int, made: Made | None) -> StoredProgram:
        weights = [copy.weight for copy in self.copies]
        size = self._container.sections.weights_bytes
        with self._reading():
            program = self._programs[index]
            if isinstance(program, list):  # text among the recipes
                start, count = map(fields.integer, fields.items(program, 2))
                program = json.loads(self._container.recipe(start, count))
            return read_program(program, made, weights, self.compatibility.threads, total=size)

    def verify(self) -> None:
        """Check every weight's checksum and verify every plan; reads the whole file.

        Raises:
            FormatError: A weight does not match its checksum, or a plan would corrupt memory.
        """
        for index in range(len(self.keys)):
            with self._reading():
                verify(self._program(index, None).placement.schedule_plan.plan)
        own = self.copies[-len(self._checksums) :] if self._checksums else ()
        for copy, checksum in zip(own, self._checksums, strict=True):
            if zlib.crc32(copy.array().data) != checksum:
                name = copy.weight.name
                raise damaged(self._path, f"weight `{name}` does not match its checksum")


def _key(value: object) -> Key:
    key = []
    for row in fields.items(value):
        name, shape = fields.items(row, 2)
        key.append((fields.text(name), fields.integers(shape)))
    return tuple(key)


@dataclass(frozen=True, slots=True)
class StoredShapes:
    """Programs of a prepared model behind the interface of a model with symbolic lengths.

    Attributes:
        model: Prepared model.
        check: Function that raises if a plan for some shapes exceeds the limit of loading.
    """

    model: StoredModel
    check: Callable[[MemoryPlan, InputShapes], None]

    def prepare(self, shapes: InputShapes, _packed: PackedBefore) -> CompiledModel:
        """Return the program for these shapes, whose weights are packed already.

        Raises:
            FormatError: The file is damaged.
        """
        return self.model.prepared(self.model.keys.index(tuple(shapes.items())))

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore) -> CompiledModel:
        """Return the program for these shapes, as `prepare` does."""
        return self.prepare(shapes, packed)

    def unshared(self, _key: Key, _own: Sequence[PackedWeight]) -> None:
        """Return None, because all weights are in the file."""

    def open_lengths(self) -> dict[str, tuple[bool, ...] | None]:
        """Tell in which lengths of each input the programs differ; None if in rank."""
        found: dict[str, tuple[bool, ...] | None] = {}
        for rows in zip(*self.model.keys, strict=True):
            shapes = [shape for _, shape in rows]
            is_one_rank = len({len(shape) for shape in shapes}) == 1
            lengths = zip(*shapes, strict=True) if is_one_rank else ()
            open_ones = tuple(len(set(row)) > 1 for row in lengths)
            found[rows[0][0]] = open_ones if is_one_rank else None
        return found

    def output_shapes(self) -> dict[str, Shape | None]:
        """Return the lengths of each output that all programs share; None if ranks differ.

        Raises:
            FormatError: The file is damaged.
        """
        found: dict[str, Shape | None] = {}
        rows = [self.model.output_shapes(index) for index in range(len(self.model.keys))]
        for name in rows[0]:
            shapes = [row[name] for row in rows]
            ranks = {None if shape is None else len(shape) for shape in shapes}
            known = [shape for shape in shapes if shape is not None]
            found[name] = None if len(ranks) > 1 or not known else _common(known)
        return found

    def source(self) -> GraphSource:
        """Refuse: graphs are in the file that the model was prepared from.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"`{self.model.name}` is a prepared file, and a session reads the ONNX file: load "
            "that with `share=True`, which shares the weights as well."
        )

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether there is a program for these shapes.

        Raises:
            InputError: There is none; the message lists the shapes that have one.
        """
        if tuple(shapes) in self.model.keys:
            return True
        keys, name = self.model.keys, self.model.name
        there_are = "; or ".join(map(shown, keys[:SHOWN_MAX]))
        more = f"; or {len(keys) - SHOWN_MAX} other sets of shapes" if len(keys) > SHOWN_MAX else ""
        raise InputError(
            f"`{name}` was prepared for {there_are}{more}; not for {shown(shapes)}. Prepare it for "
            f"these too: `{self.model.command((*keys, tuple(shapes)))}`; or load `{name}` itself, "
            "which takes every length that it leaves open."
        )


def _common(shapes: Sequence[tuple[int, ...]]) -> Shape:
    """Return the lengths that shapes of one rank share; None where they differ."""
    return tuple(row[0] if len(set(row)) == 1 else None for row in zip(*shapes, strict=True))


def shown(key: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """Format shapes for a message."""
    return ", ".join(f"`{name}` {list(shape)}" for name, shape in key)
