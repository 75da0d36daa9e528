"""Stores the programs of a shared decoder's sessions once for a user, and reads them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tightship.engine.compile.compile_graph import Settings
from tightship.engine.state.step_choices import StepChoices
from tightship.engine.stored.steps import StoredSteps, read_steps
from tightship.errors import InputError
from tightship.loading.prepared_once import about_of, open_cache
from tightship.prepared_cache import Identity, UnusableCacheError

if TYPE_CHECKING:
    from tightship.loading.model_specializer import ModelSpecializer


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
        about = about_of(self.identity.digest, 0, self.settings, self.name)
        said = {"context": str(choices.context), "session": repr(choices), "over": base.checksum}
        try:
            return open_cache().read(
                replace(about, facts={**about.facts, **said}),
                lambda path: _write(path, specializer, choices),
                lambda path: read_steps(path, base),
            )
        except UnusableCacheError:
            return None


def _write(path: Path, specializer: "ModelSpecializer", choices: StepChoices) -> None:
    """Make the programs, largest first, and write each before the next is made.

    Raises:
        UnusableCacheError: A program cannot be stored.
    """
    from tightship.engine.state.decoder import Declared
    from tightship.engine.state.digest import digest_of
    from tightship.engine.stored.compatibility import Compatibility
    from tightship.engine.stored.save import save_steps
    from tightship.engine.stored.steps import steps_json
    from tightship.loading.preparing import recording
    from tightship.loading.session_programs import session_programs

    source, stored = specializer.source(), specializer.stored.model
    declared = Declared(source.declared, specializer.output_shapes(), stored.input_types(0))
    decoder = choices.decoder(source.read, declared)
    digest = digest_of(decoder.file_graph(1))
    made = Compatibility.here(source.settings.threads, source.settings.without)
    known = specializer.known_weights()
    with recording():
        programs = session_programs(decoder, choices, stored.name, source.settings, known)
        try:
            save_steps(path, map(specializer.over_stored, programs), made, stored.copies,
                       steps_json(declared, choices.sizes, digest))  # fmt: skip
        except InputError as error:
            raise UnusableCacheError(str(error)) from None
