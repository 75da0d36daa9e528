"""Plans the memory of a decoder's sessions, from its file, for contexts and numbers of sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.plan.footprint import program_bytes, session_bytes
from tightship.engine.program.program import PackedWeight
from tightship.engine.state.decoder import CONTEXT_MIN, Declared, Decoder, decoder_of
from tightship.engine.state.stored_caches import CacheType
from tightship.engine.stored.container import holds_prepared
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.errors import GraphError, InputError
from tightship.frontend.onnx import OnnxFile
from tightship.loading.input_shapes import Given, divided
from tightship.loading.opening import is_onnx, open_model
from tightship.model.sessions import CHUNK, SessionOptions

CONTEXT_MAX = 1 << 18
"""Longest context that `largest_context` considers."""
FIRST = 4096
"""Context that is planned first: its largest program is that of longer ones."""
GUESSES = 4
"""Contexts tried by the growth of the caches, before halving finds the answer."""
PRECISION = 64
"""Rows to which it is exact, up to 4096; above that to 1 in 64."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Bytes of a loaded decoder and its sessions, for one context.

    Attributes:
        context: Most tokens of a session.
        weights_bytes: Packed weights, which all sessions share.
        arena_bytes: Arenas of the model's own program and of the steps', for one step at a time.
        io_bytes: Tokens, logits and other inputs and outputs but caches.
        runtime_bytes: Libraries, generated code and programs.
        state_bytes: Caches of one session.
        bytes_per_token: Bytes of these for one token.
    """

    context: int
    weights_bytes: int
    arena_bytes: int
    io_bytes: int
    runtime_bytes: int
    state_bytes: int
    bytes_per_token: int

    def peak_bytes(self, sessions: int) -> int:
        """Return the bytes with a number of sessions whose contexts are full."""
        fixed = self.weights_bytes + self.arena_bytes + self.io_bytes + self.runtime_bytes
        return fixed + sessions * self.state_bytes


@dataclass(slots=True)
class SessionPlanner:
    """Planner of one model's sessions; nothing is loaded.

    Attributes:
        file: The model's file.
        name: Name of the model.
        settings: Settings of its programs, without shapes.
        batch: Texts that a session goes on with at once.
        chunk: Most tokens of a program.
        cache: Type that caches are rounded to; None for the file's.
    """

    file: OnnxFile
    name: str
    settings: Settings
    batch: int
    chunk: int = CHUNK
    cache: CacheType | None = None
    _declared: Declared | None = None
    _plans: dict[int, SessionPlan] = field(default_factory=dict)

    def plan(self, context: int) -> SessionPlan:
        """Plan sessions of a context.

        Raises:
            GraphError: The model cannot be planned for a whole context.
            InputError: The context is too small.
        """
        if context not in self._plans:
            self._plans[context] = self._between(context) or self._planned(context)
        return self._plans[context]

    def _between(self, context: int) -> SessionPlan | None:
        """Return the plan between two contexts that differ in their caches alone, if there are any.

        What a program needs besides caches does not shrink as the context grows.
        """
        below = max((each for each in self._plans if each < context), default=None)
        above = min((each for each in self._plans if each > context), default=None)
        if below is None or above is None:
            return None
        less, more = self._plans[below], self._plans[above]
        if less.peak_bytes(0) != more.peak_bytes(0):
            return None
        return replace(less, context=context, state_bytes=context * less.bytes_per_token)

    def _planned(self, context: int) -> SessionPlan:
        if self._declared is None:
            self._declared = Declared.of(self.file.graph(None, allow_symbolic=True))
        options = SessionOptions(context, self.batch, self.chunk, cache=self.cache)
        decoder = decoder_of(self.file.graph, self._declared, context, self.batch)
        decoder = decoder.with_cache_type(self.cache)
        choices = options.choices()
        weights: list[PackedWeight] = []
        own = self._compiled(decoder, 0, weights)
        steps = [self._compiled(decoder, count, weights) for count in {choices.chunk: 0, 1: 0}]
        arena = own.placement.arena_bytes + max(each.placement.arena_bytes for each in steps)
        largest = max(program_bytes(each.placement.lowered) for each in steps)
        runtime = own.runtime_bytes + session_bytes(largest, choices.chunk.bit_length())
        caches = 2 * decoder.state_bytes
        return SessionPlan(
            context,
            aligned_offsets(weights)[1],
            arena,
            max(each.placement.io_bytes for each in steps) - caches,
            runtime,
            decoder.state_bytes,
            decoder.bytes_per_token,
        )

    def _compiled(self, decoder: Decoder, steps: int, weights: list[PackedWeight]) -> CompiledModel:
        """Compile a program, the file's own if `steps` is 0; add the weights that it packs."""
        graph = decoder.graph(steps, last=True) if steps else decoder.file_graph(1)
        known: dict[str, list[PackedWeight]] = {}
        for weight in weights:
            known.setdefault(weight.name, []).append(weight)
        made = prepare(graph, self.name, self.settings, known)
        for weight in made.placement.lowered.weights:
            layouts = known.setdefault(weight.name, [])
            if not any((weight.size_bytes, weight.desc) == (w.size_bytes, w.desc)
                       for w in layouts):  # fmt: skip
                layouts.append(weight)
                weights.append(weight)
        return made

    def largest_context(self, limit_bytes: int, sessions: int) -> int:
        """Return the largest context with which so many sessions fit a limit; 0 if none does."""
        least, most = 0, -(-CONTEXT_MAX // PRECISION)
        guesses = GUESSES
        while most - least > max(1, least // PRECISION):
            middle = (least + most) // 2
            if guesses:
                middle = self._guess(limit_bytes, sessions, least, most)
                guesses -= 1
            if self._fits(middle * PRECISION, limit_bytes, sessions):
                least = middle
            else:
                most = middle
        if least:
            return least * PRECISION
        return CONTEXT_MIN if self._fits(CONTEXT_MIN, limit_bytes, sessions) else 0

    def _guess(self, limit_bytes: int, sessions: int, least: int, most: int) -> int:
        """Return a number between two, close to the answer if only caches grew."""
        if not self._plans:
            return min(FIRST // PRECISION, (least + most) // 2)
        nearest = min(self._plans.values(), key=lambda p: abs(p.peak_bytes(sessions) - limit_bytes))
        left = limit_bytes - nearest.peak_bytes(sessions)
        slope = max(sessions * nearest.bytes_per_token, 1)
        wanted = (nearest.context + left // slope) // PRECISION
        wanted += 1 if wanted == least else 0
        return min(max(wanted, least + 1), most - 1)

    def _fits(self, context: int, limit_bytes: int, sessions: int) -> bool:
        try:
            return self.plan(context).peak_bytes(sessions) <= limit_bytes
        except GraphError:
            if context <= PRECISION:
                raise
            return False  # a table of the file ends before this context


def session_planner(
    model: ModelSource,
    given: Given | None,
    settings: Settings,
    cache: CacheType | None = None,
) -> SessionPlanner:
    """Return the planner of a decoder.

    Args:
        model: Path of an ONNX file, or its bytes.
        given: Lengths by dimension; the batch's may be among them.
        settings: Settings of its programs.
        cache: Type that caches are rounded to; None for the file's.

    Raises:
        FormatError: The file is not an ONNX model.
        InputError: It is none that sessions can be planned of, or a length is not the batch's.
    """
    if not isinstance(model, bytes) and is_onnx(model) and holds_prepared(model):
        raise InputError(
            f"`{name_of(model)}` is a prepared file, which has no names of dimensions; plan the "
            "sessions of the ONNX file that it was made of."
        )
    file = open_model(model)
    if not isinstance(file, OnnxFile):
        raise InputError("Sessions are planned for ONNX files; a program has no caches.")
    lengths = _lengths(file.declared, given or {})
    return SessionPlanner(
        file, name_of(model), replace(settings, shapes=None), lengths, cache=cache
    )


def _lengths(declared: Mapping[str, Sequence[object] | None], given: Given) -> int:
    """Return the batch that is given, 1 by default."""
    batches = {shape[0] for shape in declared.values() if shape and isinstance(shape[0], str)}
    shapes, named = divided({}, given)
    for name in [*shapes, *(name for name in named if name not in batches)]:
        raise InputError(
            f"`{name}` was given a length; with a context only the batch may be, by its name: "
            f"{', '.join(sorted(map(str, batches))) or 'the file fixes it'}."
        )
    return next(iter(named.values()), 1)
