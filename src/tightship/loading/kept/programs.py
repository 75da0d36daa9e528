"""Keeps the programs of a GGUF file for later processes; its weights stay in the file."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored import fields
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.kept import KeptProgram
from tightship.engine.stored.steps import shapes_json, shapes_of, types_of
from tightship.errors import FormatError, InputError
from tightship.graph import DType, Mapped, MappedFile, Shape
from tightship.graph.row_by_row import RowByRow
from tightship.loading.kept.matrices import (
    Parts,
    mapped_parts,
    parts_bytes,
    read_parts,
    taken_apart,
    write_parts,
)
from tightship.loading.kept.weights import name_of_row, weights_json, weights_of
from tightship.loading.prepared_once import WRITTEN, place_of
from tightship.prepared_cache import (
    About,
    PreparedCache,
    UnusableCacheError,
    cache_folder,
    cache_size_bytes,
    is_settled,
    keeps_programs,
)
from tightship.sha256 import hexdigest

OWN: Mapping[str, str] = {"program": "its own"}
"""Facts of the program that a model is loaded with."""
NONE: Mapping[str, str] = {"program": "none"}
"""Facts of a note that the program a model is loaded with cannot be kept."""
MATRICES: Mapping[str, str] = {"matrices": "taken apart"}
"""Facts of the matrices that are taken apart."""
ABOUT = ("files", "weights", "noted")
"""Members that an entry has besides its program."""

Shapes = Mapping[str, Shape | None]
Make = Callable[[], CompiledModel]
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class KeptPrograms:
    """Programs of a file that was not changed since it was opened.

    A program that cannot be read or kept is made, and nothing is said of it.

    Attributes:
        model: Path of the file, the first of its shards.
        settings: Settings that programs depend on.
        cache: Folder of the user.
    """

    model: Path
    settings: Settings
    cache: PreparedCache
    _files: dict[str, MappedFile] = field(default_factory=dict)
    """Files of the model by name; the first one's facts identify it."""
    _parts: dict[str, Parts] = field(default_factory=dict)
    """Parts of its matrices, once they were looked for."""
    _known: dict[tuple[str, ...], dict[object, tuple[object, PackedWeight]]] = field(
        default_factory=dict
    )
    """Weights by the names of files and their own, with what is said of them.

    Programs have many in common.
    """

    @staticmethod
    def of(model: ModelSource, settings: Settings) -> "KeptPrograms | None":
        """Return the programs of a GGUF file; None if none are kept of it.

        They are kept of GGUF files that did not change just now, unless `TIGHTSHIP_KEEP_PROGRAMS`
        is 0.
        The library must be open unless settings leave it out.

        Raises:
            InputError: An environment variable has no valid value.
        """
        if not keeps_programs() or not isinstance(model, str | os.PathLike) or settings.choice:
            return None
        path = Path(model)
        try:
            file = MappedFile(path, is_run=True)
            cache = PreparedCache(cache_folder(), cache_size_bytes())
        except (OSError, UnusableCacheError):
            return None
        assert file.facts is not None
        if not is_settled(file.facts, time.time_ns()):
            return None
        return KeptPrograms(path, settings, cache, {path.name: file})

    def own(self) -> "OwnProgram | None":
        """Return the program of loading; None if it is not kept."""
        return self._find(OWN, OwnProgram.of)

    def add_own(self, compiled: CompiledModel, inputs: Shapes, outputs: Shapes) -> None:
        """Keep the program of loading, which was lowered with recipes recorded."""
        own = compiled.placement.lowered.inputs
        types = [[name, operand.dtype.value] for name, operand in own.items()]
        if not self._add(OWN, compiled, [shapes_json(inputs), shapes_json(outputs), types]):
            with suppress(UnusableCacheError):
                self.cache.add(self._about(NONE), lambda path: path.touch())

    def make_own_apart(self) -> bool:
        """Have another process keep the program of loading, if it can be; return whether it may."""
        if not self._can_keep() or self.holds(NONE):
            return False
        from tightship.loading.kept.making import keep_own_apart  # most processes make none

        keep_own_apart(self.model, self.settings)
        return True

    def make_apart(self, choices: object, name: str, counts: Sequence[int]) -> None:
        """Have another process keep programs of sessions, if they can be; see `keep_steps_apart`.

        There may be none afterwards, which this process then makes.
        """
        from tightship.engine.state.step_choices import StepChoices

        if self.holds(OWN) and self._can_keep():
            from tightship.loading.kept.making import keep_steps_apart

            assert isinstance(choices, StepChoices)
            keep_steps_apart(self.model, self.settings, choices, name, counts)

    def holds(self, facts: Mapping[str, str]) -> bool:
        """Whether the program of some facts is kept, as far as is known without reading it."""
        return self.cache.holds(self._about(facts))

    def _can_keep(self) -> bool:
        """Whether entries can be written, as far as is known without writing one."""
        try:
            self.cache.open()
        except UnusableCacheError:
            return False
        return os.access(self.cache.folder, os.W_OK)

    def program(
        self, facts: Mapping[str, str], make: Make, note: Callable[[CompiledModel], object]
    ) -> CompiledModel:
        """Return the program of some facts, which is made and kept if it was not.

        Args:
            facts: All that it depends on besides the model and the settings.
            make: Makes it; its errors are raised.
            note: Returns what is noted of it, as JSON values.
        """
        found = self._find(facts, lambda kept: kept.compiled(has_rows=False))
        if found is not None:
            return found
        from tightship.engine.stored.recipes import recording  # most processes make none

        with recording():
            compiled = make()
        compiled = compiled._replace(stated=compiled.plan)  # it is compared with others once
        self._add(facts, compiled, note(compiled))
        return compiled

    def noted(self, facts: Mapping[str, str]) -> object:
        """Return what is noted of a program, as JSON values; None if it is not kept."""
        return self._find(facts, lambda kept: fields.record(kept.about, *ABOUT)[2])

    def _find(self, facts: Mapping[str, str], read: Callable[[KeptProgram], Read]) -> Read | None:
        try:
            return self.cache.find(
                self._about(facts), lambda path: read(KeptProgram(path, self._weights))
            )
        except UnusableCacheError:
            return None

    def _add(self, facts: Mapping[str, str], compiled: CompiledModel, noted: object) -> bool:
        """Keep a program, and return whether it can be described.

        A full disk, or no memory to write it, keep it out.
        """
        from tightship.engine.stored.save import save_kept  # most processes write none

        self._note_files(compiled)
        rows = weights_json(compiled.placement.lowered.weights, list(self._files.values()))
        if rows is None:
            return False
        files = [[name, _said(file)] for name, file in self._files.items()]
        about = dict(zip(ABOUT, (files, rows, noted), strict=True))
        made = Compatibility.here(self.settings.threads, self.settings.without)
        with suppress(UnusableCacheError, InputError, MemoryError):
            self.cache.add(self._about(facts), lambda path: save_kept(path, compiled, made, about))
        return True

    def _about(self, facts: Mapping[str, str]) -> About:
        settings = self.settings
        here = Compatibility.here(settings.threads, settings.without)
        shapes = sorted((name, str(shape)) for name, shape in (settings.shapes or {}).items())
        every = {
            "threads": str(here.threads),
            "without": " ".join(here.without),
            **here.library,
            **{f"given {name}": shape for name, shape in shapes},
            **facts,
        }
        return self._entry(0, {"version": here.version, **every})

    def _entry(self, size_bytes: int, facts: Mapping[str, str]) -> About:
        every = {"name": name_of(self.model), "written": WRITTEN, **facts}
        content = hexdigest(_said(self._files[self.model.name]).encode())
        return About(content, size_bytes, every, place_of(self.model))

    def _note_files(self, compiled: CompiledModel) -> None:
        """Note the shards that weights of a program are in."""
        for weight in compiled.placement.lowered.weights:
            constant = weight.constant
            stored = constant.stored if isinstance(constant, RowByRow) else constant
            if isinstance(stored, Mapped) and stored.file.facts is not None:
                self._files.setdefault(Path(stored.file.path).name, stored.file)

    def _weights(self, about: object) -> list[PackedWeight]:
        """Return the weights of a kept program.

        Raises:
            FormatError: A file of the model has changed.
            MalformedError: What was kept of them is damaged.
            OSError: A file cannot be opened.
        """
        files, rows, _ = fields.record(about, *ABOUT)
        pairs = [fields.items(row, 2) for row in fields.items(files)]
        opened = [self._file(fields.text(name), fields.text(said)) for name, said in pairs]
        known = self._known.setdefault(tuple(fields.text(name) for name, _ in pairs), {})
        every = [(name_of_row(row), row) for row in fields.items(rows)]
        found = [known.get(name, (None, None)) for name, _ in every]
        new = [pair for pair, (row, _) in zip(every, found, strict=True) if pair[1] != row]
        made = weights_of([row for _, row in new], opened)
        if not self._parts:
            self._parts[""] = self._parts_of(taken_apart(made))
        made = mapped_parts(made, self._parts[""])
        known.update((name, (row, weight)) for (name, row), weight in zip(new, made, strict=True))
        later = iter(made)
        return [
            weight if weight is not None and row == said else next(later)
            for (_, said), (row, weight) in zip(every, found, strict=True)
        ]

    def _parts_of(self, weights: Sequence[PackedWeight]) -> Parts:
        """Return parts of matrices in a file, which is written if it is missing.

        It depends on neither threads nor kernels. While another process writes it, this one waits.
        None are returned if it cannot be kept: then each process takes them apart for itself.
        """
        size = parts_bytes(weights)
        if not weights or size > self.cache.limit_bytes:
            return {}
        files = [[name, _said(file)] for name, file in self._files.items()]
        about = self._entry(size, {"without": " ".join(self.settings.without), **MATRICES})

        try:
            return self.cache.read(
                about,
                lambda path: write_parts(path, weights, files),
                lambda path: read_parts(path, weights, files),
            )
        except (UnusableCacheError, OSError):
            return {}

    def _file(self, name: str, said: str) -> MappedFile:
        if Path(name).name != name:
            raise MalformedError(f"`{name:.40}` is not a name of a file")
        if name not in self._files:
            self._files[name] = MappedFile(self.model.with_name(name), is_run=True)
        if _said(self._files[name]) != said:
            raise FormatError(f"`{self.model.with_name(name)}` has changed.")
        return self._files[name]

    def is_current(self) -> bool:
        """Whether the files are still those that were opened."""
        try:
            return all(
                MappedFile(self.model.with_name(name)).facts == file.facts
                for name, file in self._files.items()
            )
        except OSError:
            return False


def _said(file: MappedFile) -> str:
    return ":".join(map(str, file.facts or ()))


class OwnProgram(NamedTuple):
    """Program of loading, and what its file declares.

    Attributes:
        kept: The program.
        weights: Its weights, in order.
        inputs: Shapes of the inputs.
        outputs: Shapes of the outputs.
        types: Element types of the inputs.
    """

    kept: KeptProgram
    weights: Sequence[PackedWeight]
    inputs: Shapes
    outputs: Shapes
    types: Mapping[str, DType]

    @staticmethod
    def of(kept: KeptProgram) -> "OwnProgram":
        """Read what the file declares.

        Raises:
            FormatError: The entry is damaged.
        """
        try:
            declared = fields.record(kept.about, *ABOUT)[2]
            inputs, outputs, types = fields.items(declared, 3)
            weights = kept.weights
            return OwnProgram(kept, weights, shapes_of(inputs), shapes_of(outputs), types_of(types))
        except MalformedError as error:
            raise FormatError(f"`{kept.path}` is damaged: {error}.") from None
