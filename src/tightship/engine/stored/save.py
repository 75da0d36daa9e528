"""Writes prepared programs to a file: packed weights, then the programs that use them."""

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tightship._core import HostResource
from tightship.atomic_file import draft
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.input_shapes import key_of
from tightship.engine.plan.footprint import stored_runtime_bytes
from tightship.engine.program.program import PackedWeight
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.container import PAGE_BYTES, Sections, header
from tightship.engine.stored.dimensions import Declared, dimensions_json
from tightship.engine.stored.recipes import RecipeWriter
from tightship.engine.stored.write_program import program_json
from tightship.engine.weights.allocation import allocate
from tightship.engine.weights.pack import Bytes, Packer, staging_bytes
from tightship.engine.weights.weight_store import PackedCopy, Progress

PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Steps:
    """Programs of a decoder's sessions that are to be written.

    Attributes:
        choices: Choices of the sessions, as JSON values.
        about: What a session has to know of the programs, as JSON values; None for joint steps.
        programs: The programs, each of which is written before the next is made.
    """

    choices: Mapping[str, object]
    about: Mapping[str, object] | None
    programs: Iterable[CompiledModel]


def save(
    path: Path,
    programs: Sequence[CompiledModel],
    compatibility: Compatibility,
    progress: Progress | None = None,
    sessions: Iterable[Steps] = (),
    declared: Declared | None = None,
) -> None:
    """Write programs of one model and their packed weights, each weight once.

    Recipes must have been recorded while the programs were lowered. At most the largest weight is
    held besides the programs. The file is written whole or not at all. It keeps the names of
    dimensions in `declared`, by which lengths may then be given.

    Raises:
        InputError: A program cannot be stored; names its step.
        OSError: The file cannot be written; a previous one is untouched.
        OutOfMemoryError: Memory to pack a weight cannot be allocated.
    """
    _check(programs)
    with draft(path) as file:
        _write(file, programs, compatibility, progress, sessions, declared)


def save_into(
    file: BinaryIO,
    programs: Sequence[CompiledModel],
    compatibility: Compatibility,
    progress: Progress | None = None,
) -> None:
    """Write programs as `save` does, into an open and empty file.

    Raises:
        InputError: A program cannot be stored; names its step.
        OutOfMemoryError: Memory to pack a weight cannot be allocated.
        OSError: The file cannot be written; it has an unknown part of the content.
    """
    _check(programs)
    _write(file, programs, compatibility, progress)
    file.flush()


def save_steps(
    path: Path,
    programs: Iterable[CompiledModel],
    compatibility: Compatibility,
    base: Sequence[PackedCopy],
    about: Mapping[str, object] | None,
) -> None:
    """Write programs of a decoder's sessions over the packed weights of another file.

    The programs are read one by one, and each is written before the next is made. Weights that the
    other file lacks are written too.

    Args:
        path: Path of the file, which is written whole or not at all.
        programs: Programs, whose weights of the other file are those of `base`.
        compatibility: Environment that they need.
        base: All weights of the other file, in its order.
        about: What a session has to know of them, as JSON values; None for joint steps.

    Raises:
        InputError: A program cannot be stored; names its step.
        OSError: The file cannot be written; a previous one is untouched.
        OutOfMemoryError: Memory to pack a weight cannot be allocated.
    """
    with draft(path) as file:
        file.write(bytes(PAGE_BYTES))
        weights, recipes = _Weights(file, base), RecipeWriter()
        finish(
            file, _steps_text(Steps({}, about, programs), compatibility, weights, recipes), recipes
        )


def save_kept(
    path: Path, compiled: CompiledModel, compatibility: Compatibility, about: object
) -> None:
    """Write a program without its weights, for `KeptProgram`.

    Recipes must have been recorded while the program was lowered. The file is found damaged if the
    system ends before its bytes reach the disk, which nothing waits for.

    Args:
        path: Path of the file; has an unknown part of the content if this fails.
        compiled: The program.
        compatibility: Environment that it needs.
        about: JSON values that tell how its weights are made, in order, and more.

    Raises:
        InputError: The program cannot be stored; names its step.
        OSError: The file cannot be written.
    """
    recipes = RecipeWriter()
    said = alone_json(compiled, compatibility, (), recipes)
    with path.open("wb") as file:
        file.write(bytes(PAGE_BYTES))
        finish(file, said | {"steps": about}, recipes)


def alone_json(
    compiled: CompiledModel,
    compatibility: Compatibility,
    rows: Sequence[tuple[str, int, int, int]],
    recipes: RecipeWriter,
) -> dict[str, object]:
    """Describe a program whose weights are those of the rows, or are made otherwise."""
    lowered = compiled.placement.lowered
    amounts = compiled.plan.strategies, compiled.runtime_bytes
    program = program_json(compiled.placement, list(range(len(lowered.weights))), recipes, amounts)
    shapes = [[name, list(shape)] for name, shape in key_of(lowered)]
    named, needs = (compiled.name, dict(compiled.key)), _needs_library(recipes)
    place = recipes.text(json.dumps(program, separators=(",", ":")).encode())
    stored = {"shapes": shapes, "program": place}
    return _text(named, [stored], compatibility, rows, recipes, needs=needs)


def _check(programs: Sequence[CompiledModel]) -> None:
    """Check that programs can be stored, before anything is packed."""
    for prepared in programs:
        _program(prepared, [], RecipeWriter())


def _write(
    file: BinaryIO,
    programs: Sequence[CompiledModel],
    compatibility: Compatibility,
    progress: Progress | None,
    sessions: Iterable[Steps] = (),
    declared: Declared | None = None,
) -> None:
    file.write(bytes(PAGE_BYTES))
    weights, recipes = _Weights(file), RecipeWriter()
    weights.write([prepared.placement.lowered.weights for prepared in programs], progress)
    stored = [_stored(prepared, weights, recipes) for prepared in programs]
    first, rows = programs[0], tuple(weights.rows)
    parts = [_part(steps, compatibility, weights, recipes, len(rows)) for steps in sessions]
    needs = _needs_library(recipes) or any(need for need, _ in parts)
    said = _text((first.name, dict(first.key)), stored, compatibility, rows, recipes, needs=needs)
    if declared is not None:
        keys = [key_of(prepared.placement.lowered) for prepared in programs]
        said["dimensions"] = dimensions_json(declared, keys)
    if parts:
        said["sessions"] = [row for _, row in parts]
    finish(file, said, recipes)


def _part(
    steps: Steps,
    compatibility: Compatibility,
    weights: "_Weights",
    recipes: RecipeWriter,
    count: int,
) -> tuple[bool, list[object]]:
    """Write programs of sessions among the recipes, over the first `count` weights of the file.

    Returns:
        Whether they need the library, and the choices with the place of their description.
    """
    own = RecipeWriter(recipes.content)
    text = _steps_text(steps, compatibility, weights, own, count)
    place = recipes.text(json.dumps(text, separators=(",", ":")).encode())
    return _needs_library(own), [steps.choices, *place]


def _steps_text(
    steps: Steps,
    compatibility: Compatibility,
    weights: "_Weights",
    recipes: RecipeWriter,
    before: int = 0,
) -> dict[str, object]:
    """Write programs of sessions, and describe them with the weights from the row `before` on."""
    stored: list[dict[str, object]] = []
    for prepared in steps.programs:
        weights.write([prepared.placement.lowered.weights], None)
        stored.append(_stored(prepared, weights, recipes, apart=True))
        named = prepared.name, dict(prepared.key)
    rows = weights.rows[before:]
    said = _text(named, stored, compatibility, rows, recipes, needs=_needs_library(recipes))
    return said | {"steps": steps.about}


def _needs_library(recipes: RecipeWriter) -> bool:
    return bool(recipes.layouts or recipes.primitives)


def finish(file: BinaryIO, said: Mapping[str, object], recipes: RecipeWriter) -> None:
    """Write the program section after the weights, and the header."""
    text = json.dumps(said, separators=(",", ":")).encode()
    program = text + recipes.content
    size = file.tell() - PAGE_BYTES
    file.write(program)
    file.seek(0)
    file.write(header(Sections(size, len(text), len(recipes.content)), program))


def _stored(
    prepared: CompiledModel, weights: "_Weights", recipes: RecipeWriter, *, apart: bool = False
) -> dict[str, object]:
    """Describe a program; `apart` writes it among the recipes, to be read when it is used."""
    places = [weights.places[id(weight)] for weight in prepared.placement.lowered.weights]
    shapes = [[name, list(shape)] for name, shape in key_of(prepared.placement.lowered)]
    program: object = _program(prepared, places, recipes)
    if apart:
        program = recipes.text(json.dumps(program, separators=(",", ":")).encode())
    return {"shapes": shapes, "program": program}


def _text(
    named: tuple[str, Mapping[str, str]],
    stored: Sequence[Mapping[str, object]],
    compatibility: Compatibility,
    rows: Sequence[tuple[str, int, int, int]],
    recipes: RecipeWriter,
    *,
    needs: bool,
) -> dict[str, object]:
    if not needs:
        compatibility = compatibility.without_library()
    return {
        "model": named[0],
        "version": compatibility.version,
        "library": dict(compatibility.library),
        "threads": compatibility.threads,
        "workers": compatibility.workers,
        "without": list(compatibility.without),
        "key": named[1],
        "weights": rows,
        "programs": stored,
        "layouts": recipes.layouts,
        "primitives": recipes.primitives,
        "kernels": recipes.kernels,
    }


def _program(
    prepared: CompiledModel, weights: list[int], recipes: RecipeWriter
) -> dict[str, object]:
    runtime = stored_runtime_bytes(prepared.placement.lowered)
    strategies = prepared.plan.strategies if weights else {}
    return program_json(prepared.placement, weights, recipes, (strategies, runtime))


@dataclass(slots=True)
class _Weights:
    """Packed weights of a file that is being written; equal bytes are written once.

    Attributes:
        base: Weights of another file, which count first and are not written.
        rows: Name, offset in the file, size and checksum of each; weights of equal bytes have rows
            of their own names at one offset.
        places: Place of each weight among those of `base` and the rows, by its identity.
    """

    file: BinaryIO
    base: Sequence[PackedCopy] = ()
    rows: list[tuple[str, int, int, int]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    _known: dict[tuple[str, int, int, int], int] = field(default_factory=dict)
    _offsets: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places.update((id(copy.weight), place) for place, copy in enumerate(self.base))

    def write(self, programs: Sequence[Sequence[PackedWeight]], progress: Progress | None) -> None:
        """Pack the weights of programs, each object once."""
        used = {id(weight): weight for weights in programs for weight in weights}
        distinct = [weight for place, weight in used.items() if place not in self.places]
        resource = HostResource()
        needed = staging_bytes(distinct)
        staging = allocate(resource, needed, "a piece of a weight while it is packed")
        packer = Packer(staging.array()[:needed])
        done, total = 0, sum(weight.size_bytes for weight in distinct)
        for weight in distinct:
            room = allocate(resource, weight.size_bytes, "a weight while it is packed").array()
            packed = room[: weight.size_bytes]
            packer.pack(weight, packed)
            self.places[id(weight)] = self._place(weight.name, packed)
            done += weight.size_bytes
            if progress is not None:
                progress(done, total)
        self._pad(PAGE_BYTES)

    def _place(self, name: str, packed: Bytes) -> int:
        """Return the row of this name and these bytes, which are written if they are new."""
        checksum = zlib.crc32(packed.data)
        row = name, self._offset(packed, checksum), len(packed), checksum
        if row not in self._known:
            self._known[row] = len(self.base) + len(self.rows)
            self.rows.append(row)
        return self._known[row]

    def _offset(self, packed: Bytes, checksum: int) -> int:
        """Return the offset of these bytes, which are written if they are new."""
        alike = self._offsets.setdefault((len(packed), checksum), [])
        for offset in alike:
            if self._holds(offset, packed):
                return offset
        self._pad(ALIGNMENT)
        alike.append(self.file.tell())
        self.file.write(packed.data)
        return alike[-1]

    def _pad(self, alignment: int) -> None:
        self.file.write(bytes(-self.file.tell() % alignment))

    def _holds(self, offset: int, packed: Bytes) -> bool:
        """Whether the file has these bytes at `offset`."""
        self.file.flush()
        for start in range(0, len(packed), PIECE_BYTES):
            piece = packed[start : start + PIECE_BYTES]
            if os.pread(self.file.fileno(), len(piece), offset + start) != piece.tobytes():
                return False
        return True
