"""A decoder as its file declares it: its tokens, caches, and inputs that follow from lengths."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightship.engine.state import following_input
from tightship.engine.state.cache_types import SCALE_BYTES, CacheType, with_type
from tightship.engine.state.encoder import is_of_encoder
from tightship.engine.state.file_graphs import PAST, FileGraphs, Read
from tightship.engine.state.following_input import NEW_POSITIONS, ROWS_IN_USE, FollowingInput
from tightship.engine.state.pairs import FLAG, CachePair, names_of_pairs
from tightship.errors import GraphError, InputError
from tightship.graph import DType, Shape

if TYPE_CHECKING:
    from tightship.graph import Graph


CONTEXT_MIN = 8
"""Least context: twice the most tokens of a program, with room for `PAST` rows."""
TOKENS = ("input_ids", "inputs_embeds", "decoder_input_ids", "tokens", "ids")
MASKS = frozenset({"attention_mask", "mask"})
POSITIONS = frozenset({"position_ids", "cache_position", "positions", "input_pos"})
COUNTS: Mapping[str, FollowingInput] = {
    "past_length": following_input.PAST,
    "past_sequence_length": following_input.PAST,
    "past_seq_len": following_input.PAST,
    "write_indices": following_input.PAST,
    "seqlens_k": following_input.LAST,
    "total_sequence_length": following_input.TOTAL,
    "nonpad_kv_seqlen": following_input.TOTAL,
}
"""Inputs with numbers of rows, by their names."""


class Declared(NamedTuple):
    """Inputs and outputs of a model.

    Attributes:
        inputs: Shapes of the inputs as the file declares them.
        outputs: Shapes of the outputs as the file declares them.
        types: Element types of the inputs.
    """

    inputs: Mapping[str, Shape | None]
    outputs: Mapping[str, Shape | None]
    types: Mapping[str, DType]

    @staticmethod
    def of(graph: "Graph") -> "Declared":
        """Return what a graph with symbolic lengths declares."""
        inputs, outputs = (
            {name: graph.value(name).shape for name in names}
            for names in (graph.inputs, graph.outputs)
        )
        types = {name: graph.value(name).dtype or DType.FLOAT32 for name in graph.inputs}
        return Declared(inputs, outputs, types)

    def part(self, inputs: Collection[str], outputs: Collection[str]) -> "Declared":
        """Return some of the inputs and outputs."""
        return Declared(
            {name: self.inputs[name] for name in inputs},
            {name: self.outputs[name] for name in outputs},
            {name: self.types[name] for name in inputs},
        )


class Cache(NamedTuple):
    """Cache of a decoder: a pair, and the type and the shape in which a session has its rows."""

    pair: CachePair
    dtype: DType
    shape: tuple[int, ...]
    grows: bool
    """Whether the file's cache grows with the past, rather than having all rows."""
    stored: CacheType | None = None
    """Type that rows are rounded to; None for the file's."""

    @property
    def file_shape(self) -> tuple[int, ...]:
        """Shape in the file, with the context's rows and without scales."""
        if self.stored != "int8":
            return self.shape
        return (*self.shape[:-1], self.shape[-1] - SCALE_BYTES)


class Decoder(NamedTuple):
    """Decoder whose graphs for a context can be made.

    Attributes:
        read: Reads the file's graph.
        declared: Inputs as the file declares them.
        tokens: Input of the new tokens.
        caches: The caches.
        following: Inputs that follow from the past length.
        extra: Shapes of inputs that a caller gives.
        context: Rows of the caches.
        batch: Rows of the batch.
        logits: Name of the first output that is not a cache.
        types: Element types of the inputs.
    """

    read: Read
    declared: Mapping[str, Shape | None]
    tokens: str
    caches: tuple[Cache, ...]
    following: Mapping[str, FollowingInput]
    extra: Mapping[str, tuple[int, ...]]
    context: int
    batch: int
    logits: str
    types: Mapping[str, DType]

    @property
    def bytes_per_token(self) -> int:
        """Bytes of all caches for one row."""
        return self.state_bytes // self.context

    @property
    def state_bytes(self) -> int:
        """Bytes of all caches for the whole context."""
        from tightship.graph import size_bytes

        return sum(size_bytes(cache.dtype, cache.shape) for cache in self.caches)

    @property
    def given_bytes(self) -> int:
        """Bytes of the inputs that a caller gives."""
        from tightship.graph import size_bytes

        given = {name: shape for name, shape in self.extra.items() if name in self.declared}
        return sum(size_bytes(self.types[name], shape) for name, shape in given.items())

    def file_shapes(self, steps: int, past: int = PAST) -> dict[str, tuple[int, ...]]:
        """Return the file's shapes of all inputs for a past length and a number of new tokens."""
        shapes = self.open_shapes(steps)
        return {name: tuple(a * past + b for a, b in shape) for name, shape in shapes.items()}

    @property
    def masks(self) -> tuple[str, ...]:
        """Inputs that mark the rows in use, `[batch, rows]`."""
        return tuple(name for name, given in self.following.items() if given is ROWS_IN_USE)

    def with_fixed_caches(self) -> "Decoder":
        """Return the decoder over caches whose rows are those of the context before a step, too."""
        return self._replace(caches=tuple(each._replace(grows=False) for each in self.caches))

    def with_cache_type(self, kind: CacheType | None) -> "Decoder":
        """Return the decoder over caches that are rounded to a type; None for the file's.

        Raises:
            GraphError: A cache cannot have the type.
        """
        return self._replace(caches=tuple(with_type(each, kind) for each in self.caches))

    def follows(
        self, arrays: Mapping[str, Any], past: int, steps: int, rows: int | None = None
    ) -> bool:
        """Whether the inputs of the file are those of a step.

        Args:
            arrays: All inputs.
            past: Rows in use before.
            steps: New tokens.
            rows: Rows of caches that do not grow; None if they do.
        """
        wanted = self.file_shapes(steps, past)
        for cache in self.caches:
            shape = [*wanted[cache.pair.past]]
            shape[cache.pair.axis] = past if rows is None else rows
            wanted[cache.pair.past] = tuple(shape)
        return all(arrays[name].shape == shape for name, shape in wanted.items()) and all(
            np.array_equal(arrays[name], np.broadcast_to(each.value(past, steps), wanted[name]))
            for name, each in self.following.items()
        )

    def file_graph(self, steps: int) -> "Graph":
        """Return the file's graph for `PAST` rows and a number of new tokens."""
        return self.read(self.file_shapes(steps))

    def graph(self, steps: int, *, last: bool, few: bool = False) -> "Graph":
        """Return the graph for a number of new tokens.

        Args:
            steps: New tokens.
            last: Whether logits of the last token are wanted alone.
            few: Whether it may have few of equal layers, which `rewritten` makes whole.

        Raises:
            GraphError: The graph cannot be rewritten for a whole context.
        """
        from tightship.engine.state.decoder_graph import decoder_graph  # stored programs need none

        return decoder_graph(self, steps, last=last, few=few)

    def open_shapes(self, steps: int) -> dict[str, tuple[tuple[int, int], ...]]:
        """Return the file's shapes of all inputs, each length as `a * past + b`."""
        return {name: self._shape(name, steps) for name in self.declared}

    def _shape(self, name: str, steps: int) -> tuple[tuple[int, int], ...]:
        """Return the shape of an input, each length as `a * past + b`."""
        declared = self.declared[name] or ()
        if name in self.extra:
            return tuple((0, length) for length in self.extra[name])
        cache = next((each for each in self.caches if each.pair.past == name), None)
        if cache is not None:
            plain = [(0, length) for length in cache.file_shape]
            if cache.grows:
                plain[cache.pair.axis] = 1, 0
            return tuple(plain)
        if name == self.tokens:
            return ((0, self.batch), (0, steps), *((0, int(str(d))) for d in declared[2:]))
        given = self.following[name]
        if given is ROWS_IN_USE:
            grows = any(cache.grows for cache in self.caches)
            return (0, self.batch), (1, steps) if grows else (0, self.context)
        if given is NEW_POSITIONS:
            return (*((0, self.batch),) * (len(declared) - 1), (0, steps))
        return tuple((0, d if isinstance(d, int) else self.batch) for d in declared)


def decoder_of(
    read: Read,
    model: Declared,
    context: int,
    batch: int = 1,
    state: Mapping[str, str] | None = None,
    extra: Mapping[str, tuple[int, ...]] | None = None,
) -> Decoder:
    """Recognize the inputs of a decoder.

    Args:
        read: Reads the file's graph for shapes of all inputs.
        model: Inputs and outputs of the file.
        context: Rows that caches will have, at least 8.
        batch: Rows of the batch.
        state: Output by cache input, with `*`; None recognizes the names.
        extra: Shapes of inputs that a caller gives at each step.

    Raises:
        GraphError: An input is not recognized, or the model has no cache.
        InputError: The context or the batch is too small.
    """
    if FLAG in model.inputs:
        read, model = _without_flag(read, model)
    extra = dict(extra or {})
    declared, outputs = model.inputs, model.outputs
    named = names_of_pairs(declared, tuple(outputs), state)
    pairs = {past: present for past, present in named.items() if past not in extra}
    for past in pairs:
        _check_text(past, declared[past])
    if context < CONTEXT_MIN:
        raise InputError(f"The context is {context}; the least is {CONTEXT_MIN}.")
    if batch < 1:
        raise InputError(f"The batch is {batch}; the least is 1.")
    if not pairs:
        raise GraphError(
            "The model has no caches: no input and output are called `past...` and `present...`. "
            'Name them by `state={"past_key_values.*": "present.*"}` if they have other names.'
        )
    tokens = next((name for name in TOKENS if name in declared and name not in extra), "")
    if not tokens:
        raise GraphError(f"The model has no input of tokens; known names are {', '.join(TOKENS)}.")
    others = {n: d for n, d in declared.items() if n not in (tokens, *pairs, *extra)}
    following = {name: _following(name, shape) for name, shape in others.items()}
    rest = [name for name in outputs if name not in named.values()]
    if not rest:
        raise GraphError("The model has no output besides its caches.")
    symbol = (declared[tokens] or (None,))[0]
    caches = tuple(
        _cache(model, (past, present), symbol, (context, batch)) for past, present in pairs.items()
    )
    return Decoder(
        FileGraphs(read, declared),
        *(declared, tokens, caches, following, extra, context, batch, rest[0], model.types),
    )


def _without_flag(read: Read, model: Declared) -> tuple[Read, Declared]:
    """Return a decoder that always takes the branch with caches of its file."""
    from tightship.engine.state.cached_branch import cached_branch  # few decoders are merged

    flag = model.inputs[FLAG] or ()
    shape = tuple(1 for _ in flag)
    inputs = {name: each for name, each in model.inputs.items() if name != FLAG}

    def read_branch(shapes: Mapping[str, tuple[int, ...]]) -> "Graph":
        return cached_branch(read({**shapes, FLAG: shape}))

    return read_branch, model._replace(inputs=inputs)


def _check_text(name: str, shape: Shape | None) -> None:
    """Refuse a cache of an encoder's rows, which no step appends to."""
    if is_of_encoder(name, shape):
        raise GraphError(
            f"The cache `{name}` has the rows of an encoder, which are the same at each step; give "
            "an array for it in `inputs`."
        )


def _cache(
    model: Declared, names: tuple[str, str], symbol: object, lengths: tuple[int, int]
) -> Cache:
    """Return a cache for a context and a batch."""
    (past, present), (context, batch) = names, lengths
    before, after = model.inputs[past] or (), model.outputs[present] or ()
    axis = _axis(past, before, symbol)
    if axis >= len(before):
        raise GraphError(f"The cache `{past}` has no rows: the shape of the file is {before}.")
    grows = len(after) != len(before) or before[axis] != after[axis] or before[axis] is None
    rows = [d if isinstance(d, int) else batch for d in before]
    if not grows and isinstance(before[axis], int) and before[axis] != context:
        raise GraphError(
            f"The cache `{past}` has {before[axis]} rows in the file, which is the model's only "
            f"context, and {context} were asked for."
        )
    rows[axis] = context
    return Cache(CachePair(past, present, axis), model.types[past], tuple(rows), grows)


def _following(name: str, shape: Shape | None) -> FollowingInput:
    """Return how an input follows from the past length.

    Raises:
        GraphError: The input does not follow from it.
    """
    rank = -1 if shape is None else len(shape)
    if name in MASKS and rank == 2:
        return ROWS_IN_USE
    if name in POSITIONS and rank in (1, 2):
        return NEW_POSITIONS
    if name in COUNTS and 0 <= rank <= 1:
        return COUNTS[name]
    raise GraphError(
        f"Input `{name}` is neither a cache nor one that follows from the past length; give an "
        "array for it in `inputs`."
    )


def _axis(name: str, shape: Shape, batch_symbol: object) -> int:
    """Return the axis of a cache's rows: the open one that is not the batch's."""
    open_axes = [axis for axis, d in enumerate(shape) if not isinstance(d, int)]
    named = [a for a in open_axes if batch_symbol is None or shape[a] != batch_symbol]
    if len(named) > 1:
        named = [axis for axis in named if axis != 0]
    if not named:
        return 2 if len(shape) >= 4 else 1
    if len(named) > 1:
        raise GraphError(
            f"Axes {', '.join(map(str, named))} of the cache `{name}` are open, and only the "
            "batch and the rows may be."
        )
    return named[0]
