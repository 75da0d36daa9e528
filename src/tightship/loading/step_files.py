"""Stores the programs of a shared decoder's sessions once for a user, and reads them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tightship.engine.compile.compile_graph import Settings
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.shape_specializer import GraphSource
from tightship.engine.state.decoder import Declared, Decoder
from tightship.engine.state.step_choices import StepChoices
from tightship.engine.stored.steps import StoredSteps, read_steps, steps_json
from tightship.engine.weights.weight_store import PackedCopy
from tightship.errors import InputError
from tightship.loading.prepared_once import about_of, open_cache
from tightship.prepared_cache import Identity, UnusableCacheError

if TYPE_CHECKING:
    from tightship.loading.model_specializer import ModelSpecializer

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class StepFiles:
    """Stored programs of sessions of a model that processes share.

    Attributes:
        identity: Identity of the model's file.
        settings: Settings of the model's own programs.
        name: Path of the model, shown to users.
    """

    identity: Identity
    settings: Settings
    name: str

    def read(self, specializer: "ModelSpecializer", choices: StepChoices) -> StoredSteps | None:
        """Return the stored programs, which are made if there are none; None if they cannot be.

        Raises:
            GraphError: The model cannot be planned for a whole context.
            InputError: The model has no caches, or its file has changed.
        """
        base = specializer.stored.model
        return self._read(
            {**_facts(choices), "over": base.checksum},
            lambda path: _write(path, specializer, choices),
            lambda path: read_steps(path, base),
        )

    def joint(
        self,
        specializer: "ModelSpecializer",
        choices: StepChoices,
        steps: StoredSteps,
        decoder: Decoder,
        count: int,
    ) -> CompiledModel | None:
        """Return the stored program for a token of each of some sessions; None if it cannot be.

        Args:
            specializer: The model.
            choices: Choices of the sessions.
            steps: Their programs, over whose weights it is made if there is none.
            decoder: Their decoder.
            count: Number of sessions.

        Raises:
            GraphError: The model can have no such program.
            InputError: Its file has changed.
        """
        return self._read(
            {**_facts(choices), "joint": str(count), "over": steps.model.checksum},
            lambda path: _write_joint(path, specializer, (choices, count), steps),
            lambda path: steps.joint(path, count, decoder),
        )

    def _read(
        self, facts: dict[str, str], make: Callable[[Path], None], read: Callable[[Path], Read]
    ) -> Read | None:
        about = about_of(self.identity.digest, 0, self.settings, self.name)
        try:
            return open_cache().read(about._replace(facts={**about.facts, **facts}), make, read)
        except UnusableCacheError:
            return None


def _facts(choices: StepChoices) -> dict[str, str]:
    return {"context": str(choices.context), "session": repr(choices)}


def _write(path: Path, specializer: "ModelSpecializer", choices: StepChoices) -> None:
    """Make the programs, largest first, and write each before the next is made.

    Raises:
        UnusableCacheError: A program cannot be stored.
    """
    from tightship.engine.state.digest import digest_of
    from tightship.loading.session_programs import session_programs

    source, declared = _source(specializer)
    decoder = choices.decoder(source.read, declared)
    about = steps_json(declared, choices.sizes, digest_of(decoder.file_graph(1)))
    known = specializer.known_weights()
    programs = session_programs(
        decoder, choices, specializer.stored.model.name, source.settings, known
    )
    _save(path, specializer, programs, specializer.stored.model.copies, about)


def _write_joint(
    path: Path,
    specializer: "ModelSpecializer",
    wanted: tuple[StepChoices, int],
    steps: StoredSteps,
) -> None:
    """Make the program for a token of each of some sessions, and write it.

    Raises:
        GraphError: The model can have no such program.
        UnusableCacheError: It cannot be stored.
    """
    from tightship.engine.compile.compile_graph import prepare
    from tightship.engine.state.joint_graph import joint_graph

    (choices, count), (source, declared) = wanted, _source(specializer)
    graph = joint_graph(choices.decoder(source.read, declared), count)
    settings = replace(source.settings, shapes=None, choice=None)

    def programs() -> Iterator[CompiledModel]:
        yield prepare(graph, specializer.stored.model.name, settings, specializer.known_weights())

    _save(path, specializer, programs(), steps.copies, None)


def _source(specializer: "ModelSpecializer") -> tuple[GraphSource, Declared]:
    """Return the source of a model's graphs, and its inputs and outputs."""
    source = specializer.source()
    types = specializer.stored.model.input_types(0)
    return source, Declared(source.declared, specializer.output_shapes(), types)


def _save(
    path: Path,
    specializer: "ModelSpecializer",
    programs: Iterator[CompiledModel],
    base: Sequence[PackedCopy],
    about: dict[str, object] | None,
) -> None:
    """Write programs over the stored weights, each made when it is asked for.

    Raises:
        UnusableCacheError: A program cannot be stored.
    """
    from tightship.engine.stored.compatibility import Compatibility
    from tightship.engine.stored.recipes import recording
    from tightship.engine.stored.save import save_steps

    settings = specializer.source().settings
    made = Compatibility.here(settings.threads, settings.without)
    with recording():
        try:
            save_steps(path, map(specializer.over_stored, programs), made, base, about)
        except InputError as error:
            raise UnusableCacheError(str(error)) from None
