"""Opened prepared model: what it was made for, its plans, and its programs ready to run."""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightship.engine.activations import EXACT, FLOAT32_PRODUCTS, passes_of, usual_cache
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.input_shapes import Key, key_of
from tightship.engine.library import THREADS_MAX, library_threads
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.plan.placement import memory_plan
from tightship.engine.program.program import PackedWeight, Space
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.stored import fields
from tightship.engine.stored.bounds import check_bounds
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.container import PAGE_BYTES, damaged, open_container
from tightship.engine.stored.dimensions import read_dimensions
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.read_program import Made, StoredProgram, read_program
from tightship.engine.stored.reconstruct import reconstruct
from tightship.engine.weights.weight_store import MappedBytes, PackedCopy
from tightship.errors import PlanError
from tightship.graph import DType
from tightship.planner import verify

SHOWN_MAX = 8
"""Most sets of shapes that a message lists."""
MEMBERS = (
    "model", "version", "library", "threads", "workers", "without", "key", "weights", "programs",
    "layouts", "primitives", "kernels",
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


class _Description(NamedTuple):
    """Descriptions of programs as JSON values.

    Attributes:
        recipes: Recipes of layouts, primitives and kernels.
        shapes: Input shapes of each program.
        programs: The programs.
    """

    recipes: list[Sequence[object]]
    shapes: list[object]
    programs: list[object]

    @staticmethod
    def of(text: object) -> "_Description":
        """Take them from the description of a model.

        Raises:
            MalformedError: They are not there.
        """
        found = text if isinstance(text, dict) else {}
        recipes = [fields.items(found.get(name)) for name in MEMBERS[-3:]]
        programs = [fields.record(each, "shapes", "program")
                    for each in fields.items(found.get("programs"))]  # fmt: skip
        return _Description(recipes, [each for each, _ in programs], [each for _, each in programs])


class StoredModel:
    """Prepared model in a file whose header and program section have the right checksums.

    Attributes:
        name: Name of the model in reports.
        compatibility: Environment that its programs need.
        copies: Packed weights.
        keys: Input shapes of each program.
        path: Path of the file.
        steps: What sessions have to know of the programs, as JSON values; None if there are none.
        sessions: Choices of sessions as JSON values, each with start and size of a part that has
            their programs.
        dimensions: Lengths of inputs as the model declares them, with their names; None in a file
            of an earlier version.
        weights_bytes: Bytes of the file that its own weights take.
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
        self.path = os.fspath(path)
        self._container = open_container(self.path)
        self._part: tuple[int, int] | None = None
        self._described: _Description | None = None
        self.copies, self.weights_bytes = tuple(base), 0
        with self._reading():
            self._read(self._text())

    def part(self, start: int, size: int) -> "StoredModel":
        """Return further programs over the weights of this model, with what weights they add.

        Args:
            start: Start of their description among the recipes.
            size: Size of the description in bytes.

        Raises:
            FormatError: The file is damaged.
        """
        found = StoredModel.__new__(StoredModel)
        found.path, found._container, found._part = self.path, self._container, (start, size)
        found.copies, found.weights_bytes = self.copies, self.weights_bytes
        with self._reading():
            found._read(found._text())
            if found.sessions or not found.compatibility.is_part_of(self.compatibility):
                raise MalformedError("programs of sessions are not for the model's environment")
        return found

    def command(
        self,
        keys: Sequence[Key],
        made: Compatibility | None = None,
        *,
        contexts: Sequence[int] | None = None,
        cache: str | None = None,
    ) -> str:
        """Word the command that makes the file again for these sets of input shapes.

        Threads, workers and omitted passes are those of `made`, by default those of the file, as
        are contexts of sessions.
        """
        made = made or self.compatibility
        count, at_once, left_out = made.threads, made.workers, made.without
        shapes = [
            f"--shape {name}={'x'.join(map(str, shape))}" for key in keys for name, shape in key
        ]
        texts = sorted({count for count, *_ in self._contexts} if contexts is None
                       else set(contexts))  # fmt: skip
        if contexts is None and self._contexts:
            cache = self._contexts[0][1]
        options = [
            *([*shapes[:SHOWN_MAX], "...", shapes[-1]] if len(shapes) > SHOWN_MAX + 1 else shapes),
            *([f"--threads {count}"] if count != 1 else []),
            *([f"--workers {at_once}"] if at_once != 1 else []),
            *[f"--without {name}" for name in passes_of(left_out)],
            *(["--activations int8"] if EXACT in left_out else []),
            *(["--precision bfloat16"] if FLOAT32_PRODUCTS in left_out else []),
            *([f"--context {','.join(map(str, texts))}"] if texts else []),
            *([f"--cache {cache or 'float32'}"] if texts and cache != self._usual_cache else []),
        ]
        return " ".join(["tightship prepare", self.name, "-o", self.path, *options])

    @property
    def _usual_cache(self) -> str | None:
        """Type of caches that `prepare` takes by itself; None for that of the model."""
        return usual_cache(self.compatibility.without)

    @property
    def checksum(self) -> str:
        """Checksum of the header, which covers the program section and has that of each weight."""
        return self._container.checksum

    def forget(self) -> None:
        """Forget how programs are described, which is read from the file again when wanted."""
        self._described = None

    def _text(self) -> object:
        """Read the description of the model, or of its part, as JSON values."""
        container = self._container
        return json.loads(container.text if self._part is None else container.recipe(*self._part))

    def _description(self) -> "_Description":
        """Return how programs are described.

        Raises:
            MalformedError: The file is damaged.
        """
        if self._described is None:
            self._described = _Description.of(self._text())
        return self._described

    def _read(self, text: object) -> None:
        more = text if isinstance(text, dict) else {}
        self.steps = more.pop("steps", None)
        dimensions = more.pop("dimensions", None)
        self.sessions = [_session(row) for row in fields.items(more.pop("sessions", []))]
        self._contexts = [_context(said) for said, _, _ in self.sessions]
        values = dict(zip(MEMBERS, fields.record(text, *MEMBERS), strict=True))
        self.name = fields.text(values["model"])
        self.compatibility = Compatibility(
            fields.text(values["version"]),
            fields.texts(values["library"]),
            fields.integer(values["threads"], 1, THREADS_MAX),
            tuple(fields.each(values["without"], fields.text)),
            fields.integer(values["workers"], 1, THREADS_MAX),
        )
        if min(self.compatibility.threads, self.compatibility.workers) > 1:
            raise MalformedError("it has several workers of several threads")
        self._key = fields.texts(values["key"])
        room = MappedBytes(np.frombuffer(self._container.weights(), np.uint8))
        self._checksums: list[int] = []
        self.copies += tuple([self._copy(row, room) for row in fields.items(values["weights"])])
        described = self._described = _Description.of(text)
        self.keys = tuple([_key(shapes) for shapes in described.shapes])
        if not self.compatibility.needs_library and any(described.recipes[:2]):
            raise MalformedError("it has layouts or primitives of a library that it does not need")
        if not self.keys or len(set(self.keys)) < len(self.keys):
            raise MalformedError("its programs are none, or not for shapes of their own")
        self.dimensions = read_dimensions(dimensions, self.keys)

    def _copy(self, row: object, room: MappedBytes) -> PackedCopy:
        name, offset, size, checksum = fields.items(row, 4)
        start = fields.integer(offset) - PAGE_BYTES
        count = fields.integer(size)
        if start < 0 or start % ALIGNMENT or start + count > len(room.content):
            raise MalformedError(f"a weight at {start} of {count} bytes is not among the weights")
        self._checksums.append(fields.integer(checksum))
        end = -(-(start + count) // PAGE_BYTES) * PAGE_BYTES
        self.weights_bytes = max(self.weights_bytes, end)
        return PackedCopy(PackedWeight(fields.text(name), Unread((count,)), count), room, start)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of reading a program into an error that calls the file damaged."""
        try:
            yield
        except (MalformedError, PlanError, RecursionError, json.JSONDecodeError) as error:
            raise damaged(self.path, str(error).rstrip(".")) from None
        except UnicodeDecodeError:
            raise damaged(self.path, "its text is not UTF-8") from None

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

    def arenas(self) -> list[int]:
        """Return the bytes of each program's arena.

        Raises:
            FormatError: The file is damaged.
        """
        every = range(len(self.keys))
        return [self._program(index, None).placement.arena_bytes for index in every]

    def prepared(self, index: int) -> CompiledModel:
        """Return a program with its kernels reconstructed, ready to be built.

        Raises:
            FormatError: The file is damaged, or stale: the library chooses another implementation
                here.
        """
        with self._reading():
            with library_threads(self.compatibility.threads):
                recipes = self._description().recipes
                stored = self._program(index, reconstruct(self._container, recipes))
            check_bounds(stored.placement)
        if key_of(stored.placement.lowered) != self.keys[index]:
            raise damaged(self.path, "a program is for other shapes than it says")
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

    def _program(
        self, index: int, made: Made | None, *, has_schedule: bool = True
    ) -> StoredProgram:
        weights = self._given()
        with self._reading():
            program = self._description().programs[index]
            if isinstance(program, list):  # text among the recipes
                start, count = map(fields.integer, fields.items(program, 2))
                program = json.loads(self._container.recipe(start, count))
            own = self.compatibility
            return read_program(
                program,
                made,
                weights,
                (own.threads, own.workers),
                total=self.weights_bytes,
                has_schedule=has_schedule,
            )

    def _given(self) -> Sequence[PackedWeight]:
        """Return the weights that programs name by their place."""
        return [copy.weight for copy in self.copies]

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
                raise damaged(self.path, f"weight `{name}` does not match its checksum")
        for _, start, size in self.sessions:
            self.part(start, size).verify()


def _session(value: object) -> tuple[dict[str, object], int, int]:
    """Read choices of sessions, and the place of a part."""
    said, start, size = fields.items(value, 3)
    if type(said) is not dict:
        raise MalformedError("choices of sessions are not an object")
    return said, fields.integer(start), fields.integer(size)


def _context(said: dict[str, object]) -> tuple[int, str | None]:
    """Read context and type of the caches, for the command that makes the file again."""
    cache = said.get("cache")
    return fields.integer(said.get("context")), None if cache is None else fields.text(cache)


def _key(value: object) -> Key:
    key = []
    for row in fields.items(value):
        name, shape = fields.items(row, 2)
        key.append((fields.text(name), fields.integers(shape)))
    return tuple(key)
