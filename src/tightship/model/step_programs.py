"""Programs of a decoder for 1, 2, 4, ... new tokens, over one copy of the weights."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tightship._core import TokenSteps
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.engine.cache.bounds import Bounds
from tightship.engine.cache.paused_collection import paused_collection
from tightship.engine.cache.program_cache import ProgramCache
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.library import release_unused
from tightship.engine.plan.footprint import further_bytes, program_bytes, session_bytes
from tightship.engine.program.program import PackedWeight
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.engine.run.output_buffer_pool import OutputBufferPool
from tightship.engine.state.decoder import Decoder
from tightship.engine.stored.steps import StoredSteps
from tightship.engine.weights.weight_store import PackedCopy
from tightship.errors import InputError
from tightship.graph.moved_constant import NotMovedError
from tightship.model.feeds import Array
from tightship.model.keeping import JOINT, TOKENS, Keeping
from tightship.model.step_arrays import BoundCaches, StepPlaces
from tightship.model.step_sizes import CountedWeights, lowered_steps

if TYPE_CHECKING:
    from tightship.graph import Graph


@dataclass(slots=True)
class StepPrograms:
    """Programs of one decoder; a session runs them on its caches.

    Attributes:
        decoder: Source of the graphs.
        name: Name of the model in errors.
        settings: Settings of the model's programs.
        chunk: Most tokens of a program, a power of two.
        last: Whether programs compute the logits of their last token alone.
        packed: Weights that are packed already.
        stored: Programs that are stored for all processes; None to make them of the graphs.
        joint: Function that returns the stored program for a token of each of some sessions; None
            if there are none.
        kept: Programs that are kept of the graphs; None if none are.
    """

    decoder: Decoder
    name: str
    settings: Settings
    chunk: int
    last: bool
    packed: list[PackedCopy]
    stored: StoredSteps | None = None
    joint: Callable[[int], CompiledModel | None] | None = None
    kept: Keeping | None = None
    _programs: dict[int, ProgramCache] = field(default_factory=dict)
    _prepared: dict[int, CompiledModel] = field(default_factory=dict)
    """Programs for the most tokens and for one, from when bytes were asked for until made."""
    _given_count: int = field(init=False)
    """Weights that were packed before any program of sessions was made."""
    _planned_bytes: int = 0
    _arenas: ArenaGroup = field(default_factory=ArenaGroup)
    _places: dict[int, StepPlaces] = field(default_factory=dict)
    token_steps: TokenSteps | None = None
    """Steps of one token in one call, in arenas that earlier ones ran in."""
    _kept: OutputBufferPool = field(default_factory=OutputBufferPool)
    _making: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False
    _digest: str = ""
    _appends: bool | None = None
    _notes: dict[int, bool | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._given_count = len(self.packed)

    @property
    def count(self) -> int:
        """Programs that have been made."""
        return len(self._programs)

    @property
    def appends(self) -> bool:
        """Whether steps leave rows of the caches that they do not append alone.

        Programs for one token and for the most tokens tell; both are made before a session is, or
        kept with a note of it.
        """
        if self._appends is None:
            self._appends = all(map(self._appends_by, (self.chunk, 1)))
        return self._appends

    def _appends_by(self, steps: int) -> bool:
        noted = None if steps in self._programs else self._noted(steps)
        return self._places_of(steps).appends if noted is None else noted

    def _noted(self, steps: int) -> bool | None:
        """Return whether a kept program appends; None if it is not kept."""
        if steps not in self._notes:
            self._notes[steps] = None if self.kept is None else self.kept.appends(steps)
        return self._notes[steps]

    def make_ends(self, *, with_kept: bool) -> None:
        """Make the programs for the most tokens and for one, unless they are kept.

        Args:
            with_kept: Whether they are made even if they are kept.

        Raises:
            GraphError, InputError, OutOfMemoryError: As `program`.
        """
        self._make_apart((self.chunk, 1))
        for steps in (self.chunk, 1):
            if with_kept or self._noted(steps) is None:
                self.program(steps)

    @property
    def digest(self) -> str:
        """Digest of the model, whatever the context."""
        if self.stored is not None:
            return self.stored.digest
        if not self._digest:
            from tightship.engine.state.digest import digest_of  # few sessions are stored

            self._digest = digest_of(self.decoder.file_graph(1))
        return self._digest

    @property
    def arenas(self) -> ArenaGroup:
        """Arenas that all programs share."""
        return self._arenas

    def arena_bytes(self) -> int:
        """Return the bytes of the largest arena of the programs for the most tokens and for one."""
        made = (self.program(size).first_plan for size in (self.chunk, 1))
        return max(plan.arena_bytes for plan in made)

    def program(self, steps: int) -> ProgramCache:
        """Return the program for a number of new tokens, made at its first use.

        Raises:
            GraphError: The graph has an operator that no kernel can run.
            InputError: The model is closed.
            OutOfMemoryError: The system refuses memory.
        """
        found = self._programs.get(steps)
        if found is not None and not self._is_closed:
            return found
        with self._making:
            if self._is_closed:
                raise InputError(f"`{self.name}` was closed; load it again to run it.")
            if steps not in self._programs:
                with paused_collection():
                    self._programs[steps] = self._made(steps)
            return self._programs[steps]

    def keep(self, name: str, count: int) -> None:
        """Make and keep a program, for later processes alone.

        Args:
            name: `TOKENS` or `JOINT`.
            count: Number of tokens, or of sessions.

        Raises:
            GraphError: It cannot be made.
        """
        if name == TOKENS:
            self._compiled(count)
        else:
            self.compiled_joint(count, apart=False)

    def _make_apart(self, sizes: Iterable[int]) -> None:
        """Have another process make and keep the programs for some numbers of tokens."""
        if self.kept is not None:
            self.kept.make_apart(TOKENS, set(sizes) - self._programs.keys() - self._prepared.keys())

    def make(self, sizes: Iterable[int]) -> None:
        """Make the programs for some numbers of tokens that there are none for.

        Raises:
            GraphError, InputError, OutOfMemoryError: As `program`.
        """
        missing = [size for size in sizes if size not in self._programs]
        if missing:
            self._make_apart(missing)
            for size in missing:
                self.program(size)

    def make_all(self) -> None:
        """Make the programs for all numbers of tokens, so that no step waits for one.

        Raises:
            GraphError, InputError, OutOfMemoryError: As `program`.
        """
        self.make(1 << bit for bit in range(self.chunk.bit_length()))

    def planned_bytes(self) -> int:
        """Return the bytes of the largest arena, of inputs and outputs but caches, and of programs.

        Weights that the model's own program lacks are among them. Nothing is allocated for it, so
        that a limit can be checked first.
        """
        with self._making:
            if not self._planned_bytes:
                self._planned_bytes = self._planned()
            return self._planned_bytes

    def _planned(self) -> int:
        if self.stored is not None:
            made = {self.chunk: self.stored.compiled(self.chunk, self.decoder)}
            arena_bytes, weights_bytes = max(self.stored.model.arenas()), 0
        else:
            self._make_apart((self.chunk, 1))
            weights = CountedWeights()
            weights.hold(self.packed[: self._given_count])
            made = lowered_steps(self.chunk, self._lowered, weights)
            arena_bytes = max(each.placement.arena_bytes for each in made.values())
            weights_bytes = weights.size_bytes
        self._prepared = {steps: made[steps] for steps in (self.chunk, 1) if steps in made}
        io_bytes = max(each.placement.io_bytes for each in made.values())
        largest, further = (
            max(count(each.placement.lowered, is_stored=self.stored is not None)
                for each in made.values())
            for count in (program_bytes, further_bytes)
        )  # fmt: skip
        programs = session_bytes(largest, further, self.chunk.bit_length())
        io_bytes = max(io_bytes - 2 * self.decoder.state_bytes, 0)
        return arena_bytes + weights_bytes + io_bytes + programs

    def _compiled(self, steps: int) -> CompiledModel:
        if self.stored is not None:
            return self.stored.compiled(steps, self.decoder)
        return self._lowered(steps, self._packed_by_name())

    def _packed_by_name(self) -> PackedBefore:
        before: dict[str, list[PackedWeight]] = {}
        for copy in self.packed:
            before.setdefault(copy.weight.name, []).append(copy.weight)
        return before

    def _lowered(self, steps: int, before: PackedBefore) -> CompiledModel:
        def make() -> CompiledModel:
            graph = self.decoder.graph(steps, last=self.last, few=True)
            try:
                return self._prepare(graph, before)
            except NotMovedError:
                return self._prepare(self.decoder.graph(steps, last=self.last), before)

        if self.kept is None:
            return make()
        return self.kept.program(TOKENS, steps, make, self.decoder)

    def _prepare(self, graph: "Graph", before: PackedBefore) -> CompiledModel:
        settings = replace(self.settings, shapes=None, choice=None)
        return prepare(graph, self.name, settings, before)

    def compiled_joint(self, count: int, *, apart: bool = True) -> CompiledModel | None:
        """Compile the program for a token of each of some sessions; None if stored ones lack it.

        Args:
            count: Sessions.
            apart: Whether another process makes it if it is not kept.

        Raises:
            GraphError: The model can have no such program.
        """
        if self.stored is not None:
            return None if self.joint is None else self.joint(count)
        from tightship.engine.state.joint_graph import joint_graph  # few sessions step together

        def make() -> CompiledModel:
            return self._prepare(joint_graph(self.decoder, count), self._packed_by_name())

        if self.kept is None:
            return make()
        if apart:
            self.kept.make_apart(JOINT, [count])
        return self.kept.program(JOINT, count, make, self.decoder)

    def _made(self, steps: int) -> ProgramCache:
        prepared = self._prepared.pop(steps, None) or self._compiled(steps)
        totals = replace(prepared.plan, steps=(), tensors=(), weights=())  # none are ever shown
        prepared = prepared._replace(stated=totals)
        made = ProgramCache(prepared, Bounds(arena_pool=self._arenas), packed=self.packed)
        with made.reserved(made.first_key, Limits()) as (program, _):
            if self.stored is not None:
                self.stored.model.forget()
            known = set(map(id, self.packed))
            self.packed += [c for c in program.executable.weights if id(c) not in known]
        release_unused()
        return made

    def run(
        self, steps: int, tokens: Array, past: int, caches: BoundCaches, limits: Limits
    ) -> Array:
        """Run a program on caches, which get the new rows in place; return the logits.

        Args:
            steps: New tokens.
            tokens: These, `[batch, steps, ...]`.
            past: Tokens before them.
            caches: The caches.
            limits: Limits of the run.
        """
        places, pool = self._places_of(steps), self._arenas.pool
        bound, executable = caches.step(steps, places), places.executable
        room = pool.reserve(executable, limits, 0)
        try:
            bound.set(tokens, past)
            # All rows have another shape for each length.
            results = places.new_results(self._kept if self.last else None)
            objects = dict(bound.objects) if bound.objects else {}
            arena = room.arena(executable)
            execute(executable, arena, results, objects, limits, fixed=bound.fixed)
            if steps == 1 and self.token_steps is not None:
                self.token_steps.add(arena.context, room.range, room.claim, room.needed_bytes)
        finally:
            pool.release(room, 0)
        for name, slot in places.copied.items():
            caches.arrays[name][...] = results[slot]
        return results[places.logits]

    def _places_of(self, steps: int) -> StepPlaces:
        """Return where the program for a number of new tokens has caches."""
        found = self._places.get(steps)
        if found is None:
            executable = self.program(steps).first_executable
            assert executable is not None, steps
            found = self._places.setdefault(steps, StepPlaces.of(executable, self.decoder))
            if steps == 1:
                self.token_steps = found.token_steps(self._kept if self.last else None)
        return found

    def close(self) -> None:
        """Release the programs; waits for runs in progress."""
        with self._making:
            self._is_closed = True
            self._arenas.close()
            if self.token_steps is not None:
                self.token_steps.clear()
            for program in self._programs.values():
                program.close()
            self._programs.clear()
            self._places.clear()
            self._kept.release()
            self.packed.clear()


@lru_cache(maxsize=1024)
def pieces(count: int, chunk: int) -> tuple[int, ...]:
    """Divide a number of tokens into powers of two up to `chunk`, largest first."""
    left = count % chunk
    rest = tuple(1 << bit for bit in reversed(range(left.bit_length())) if left >> bit & 1)
    return (chunk,) * (count // chunk) + rest
