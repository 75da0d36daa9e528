"""Plans the memory of a decoder's sessions, from its file, for contexts and numbers of sessions."""

from dataclasses import dataclass, field, replace

from tightship.engine.activations import usual_cache
from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of, prepare
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.plan.footprint import NODE_BYTES, counted, node_kinds
from tightship.engine.state.cache_types import CacheType
from tightship.engine.state.decoder import CONTEXT_MIN, Declared
from tightship.engine.state.encoder import encoder_dimensions, encoder_shapes
from tightship.engine.state.step_choices import StepChoices
from tightship.engine.stored.container import holds_prepared
from tightship.errors import GraphError, InputError
from tightship.frontend.onnx import OnnxFile
from tightship.loading.input_shapes import Given, divided
from tightship.loading.opening import is_onnx, open_model
from tightship.loading.planned_session import SessionParts, SessionPlan, StepParts, batch_of
from tightship.model.session_options import CHUNK, SessionOptions
from tightship.model.step_sizes import CountedWeights, lowered_steps

CONTEXT_MAX = 1 << 18
"""Longest context that `largest_context` considers."""
FIRST = 4096
"""Context that is planned first: its largest program is that of longer ones."""
GUESSES = 4
"""Contexts tried by the growth of the caches, before halving finds the answer."""
LAYERS_MIN = 12
"""Fewest layers of a model that is planned by few of them; what is around these counts twice."""
PRECISION = 64
"""Rows to which it is exact, up to 4096; above that to 1 in 64."""


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
        extra: Shapes of inputs with an encoder's rows, which a session is given.
    """

    file: OnnxFile
    name: str
    settings: Settings
    batch: int
    chunk: int = CHUNK
    cache: CacheType | None = None
    extra: tuple[tuple[str, tuple[int, ...]], ...] = ()
    _declared: dict[OnnxFile, Declared] = field(default_factory=dict)
    _few: "tuple[OnnxFile, OnnxFile, int] | tuple[()] | None" = None
    """The model with two and three of its layers, and how many more it has; empty if not equal."""
    _plans: dict[int, SessionPlan] = field(default_factory=dict)

    @property
    def least_context(self) -> int:
        """Shortest context that can be planned."""
        return CONTEXT_MIN

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
        further = (context - below) * less.bytes_per_token
        return replace(less, context=context, state_bytes=less.state_bytes + further)

    def _planned(self, context: int) -> SessionPlan:
        options = SessionOptions(context, self.batch, self.chunk, cache=self.cache)
        choices = options.choices()._replace(extra=self.extra)
        parts = self._of_few_layers(choices) or self._parts(self.file, choices)
        return parts.plan(context, choices.chunk.bit_length())

    def _of_few_layers(self, choices: StepChoices) -> SessionParts | None:
        """Tell the whole model's parts from two and three of its layers, if they are equal."""
        if self._few is None:
            self._few = few_layers(self.file)
        if not self._few:
            return None
        fewer, more, others = self._few
        try:
            known = self._parts(more, choices)
            names = fewer.declared, fewer.declared_outputs
            self._declared.setdefault(fewer, self._declared[more].part(*names))
            less = self._parts(fewer, choices)
        except GraphError:  # it names a node of the whole model below, or is none of it
            return None
        return known.with_more_layers(less, others)

    def _parts(self, file: OnnxFile, choices: StepChoices) -> SessionParts:
        """Lower the model's own program and those of its sessions that tell the bytes of all."""
        if file not in self._declared:
            self._declared[file] = Declared.of(file.graph(None, allow_symbolic=True))
        decoder = choices.decoder(file.graph, self._declared[file])
        own_graph, weights = decoder.file_graph(1), CountedWeights()
        own = prepare(own_graph, self.name, self.settings, {})
        weights.add(own.placement.lowered.weights)

        def lower(count: int, packed: PackedBefore) -> CompiledModel:
            return prepare(decoder.graph(count, last=True), self.name, self.settings, packed)

        steps = lowered_steps(choices.chunk, lower, weights)
        nodes = node_kinds(own_graph)
        return SessionParts(
            weights.size_bytes,
            own.placement.arena_bytes,
            nodes,
            own.runtime_bytes - counted(*nodes) * NODE_BYTES,
            decoder.state_bytes,
            tuple(StepParts.of(each.placement) for each in steps.values()),
            decoder.given_bytes,
            own.placement.io_bytes,
        )

    def largest_context(self, limit_bytes: int, sessions: int) -> int:
        """Return the largest context with which so many sessions fit a limit; 0 if none does.

        It is not longer than the texts that the model was trained with, if the file tells these.
        """
        longest = self.file.longest_context
        if longest and longest >= CONTEXT_MIN and self._fits(longest, limit_bytes, sessions):
            return longest
        least, most = 0, -(-min(longest or CONTEXT_MAX, CONTEXT_MAX) // PRECISION)
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


def few_layers(file: OnnxFile) -> tuple[OnnxFile, OnnxFile, int] | tuple[()]:
    """Return a model with two and three of its layers, and how many more it has; empty if few."""
    count = file.layer_count()
    if count < LAYERS_MIN:
        return ()
    more = file.with_layers(3)
    return more.with_layers(2), more, count - 3


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
        cache: Type that caches are rounded to; None for the default of the settings.

    Raises:
        FormatError: The file is not an ONNX model.
        InputError: It is none that sessions can be planned of, or a length is not the batch's.
    """
    if not isinstance(model, bytes) and is_onnx(model) and holds_prepared(model):
        raise InputError(
            f"`{name_of(model)}` is a prepared file, which has programs for its own sessions only; "
            "plan the sessions of the ONNX file that it was made of."
        )
    file = open_model(model)
    if not isinstance(file, OnnxFile):
        raise InputError("Sessions are planned for ONNX files; a program has no caches.")
    rows = encoder_dimensions(file.declared)
    batch = batch_of(file.declared, given or {}, rows)
    lengths = {name: length for name, length in divided({}, given or {})[1].items() if name in rows}
    extra = tuple(sorted(encoder_shapes(file.declared, batch, lengths).items()))
    return SessionPlanner(
        file, name_of(model), replace(settings, shapes=None), batch,
        cache=cache or usual_cache(settings.without), extra=extra,
    )  # fmt: skip
