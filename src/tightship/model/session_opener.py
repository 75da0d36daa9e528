"""Part of `Model` that opens sessions."""

import threading
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal

from numpy.typing import ArrayLike

from tightship.engine.cache.program_cache import ProgramCache
from tightship.engine.compile.input_shapes import Key
from tightship.engine.compile.shape_specializer import ShapeSpecializer
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.run.limits import Limits
from tightship.engine.weights.weight_store import PackedCopy
from tightship.errors import InputError
from tightship.graph import DType, Shape
from tightship.public_calls import explains_memory, public_methods

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import ModelSource
    from tightship.engine.state.cache_types import CacheType
    from tightship.model.feeds import Array
    from tightship.model.growing_runs import GrowingRuns
    from tightship.model.session import Session
    from tightship.model.session_pool import SessionPool
    from tightship.model.sessions import DecoderFile, Sessions
    from tightship.text.tokenizer import Tokenizer


@public_methods
class SessionOpener:
    """Loaded model that may be a decoder."""

    plan: MemoryPlan
    _variants: ShapeSpecializer | None
    _limit_bytes: int | None
    _closing: threading.Lock
    _workers: int
    """Workers of a run that says nothing of them."""
    _sessions: "Sessions | None" = None
    _file: "str | PathLike[str] | bytes | None" = None
    """File that the model was loaded from, which may have its vocabulary."""
    _tokenizer: "Tokenizer | None" = None
    _growing: "GrowingRuns | Literal[False] | None" = None
    """Runs whose caches grow; None before one is tried, False if the model is not a decoder."""

    @property
    def input_types(self) -> dict[str, tuple[DType, tuple[int, ...] | None]]:
        """Element type and shape of every input."""
        raise NotImplementedError

    @property
    def known_output_shapes(self) -> dict[str, Shape | None]:
        """Shape of every output for any inputs."""
        raise NotImplementedError

    def _open(self) -> ProgramCache:
        raise NotImplementedError

    def _check_open(self) -> None:
        """Check that the model is not closed.

        Raises:
            InputError: It is.
        """
        self._open()

    @property
    def _name(self) -> str:
        """Name of the model in reports."""
        return self.plan.model

    def _types(self) -> dict[str, DType]:
        """Return the element types of the inputs."""
        return {name: dtype for name, (dtype, _) in self.input_types.items()}

    def _outputs(self) -> Mapping[str, Shape | None]:
        """Return the shapes of outputs for any inputs."""
        return self.known_output_shapes

    def _packed(self) -> Sequence[PackedCopy]:
        """Return the packed weights of the model's own program."""
        return self._open().packed_weights

    @explains_memory("a session of a model")
    def session(
        self,
        context: int,
        *,
        batch: int = 1,
        chunk: int = 128,
        rows: str = "last",
        state: Mapping[str, str] | None = None,
        inputs: Mapping[str, ArrayLike] | None = None,
        pool: "SessionPool | None" = None,
        share_prefix: bool = False,
        cache: "CacheType | None" = None,
    ) -> "Session":
        """Open a session of a decoder: a text, and the caches of its tokens.

        Args:
            context: Most tokens, at least 8; the caches are planned for it.
            batch: Texts that go on at once, each by as many tokens.
            chunk: Most tokens that run at once; a power of two is taken, at most half the context.
            rows: `"last"` or `"all"`: the tokens whose logits a step returns.
            state: Outputs by the inputs of caches, with `*`, as in
                `{"past_key_values.*": "present.*"}`; by default they are recognized by their names.
            inputs: Arrays of inputs that are the same at each step.
            pool: Gives the memory of the caches as tokens come; by default all of it is the
                session's from the start. A limit of loading counts the pool once, with its cap.
            share_prefix: Whether to show rows that another session of the user, in any process, has
                of the same first tokens, rather than compute them, and to let others show this
                session's. Whole blocks of tokens are shared.
            cache: Type that rows of the caches are rounded to: `"float16"`, `"bfloat16"`, or
                `"int8"` with a float32 scale for each token and head; `"float32"` rounds none. A
                model whose caches have it already keeps it. None is float16 for a model that was
                loaded with `activations="int8"`, and the model's own type for others.

        Raises:
            CapacityError: The limit of loading does not hold the caches and programs.
            GraphError: The model has no caches, or an operator without a rule for a whole context,
                or one that cannot read caches of the type.
            InputError: An argument does not fit, or the model is closed, has fixed shapes, or was
                loaded for several workers.
            OutOfMemoryError: The system refuses memory.
        """
        from tightship.model.session_options import SessionOptions  # few models have sessions

        self._check_alone()
        with self._closing:
            sessions = self._opened()
            options = SessionOptions(
                context, batch, chunk, rows, state, inputs, pool, share_prefix,
                cache=self._cache_type(cache),
            )  # fmt: skip
            return sessions.open(options)

    def _cache_type(self, asked: "CacheType | None") -> "CacheType | None":
        """Return the type that caches are rounded to, for the choice of a caller."""
        from tightship.engine.activations import usual_cache
        from tightship.engine.state.cache_types import chosen_type

        return chosen_type(asked, usual_cache(self._left_out()), self._types().values())

    def _left_out(self) -> Collection[str]:
        """Return the passes that the model was loaded without."""
        from tightship.engine.activations import with_activations

        key = self.plan.key
        passes = key["without"].split(", ") if "without" in key else ()
        return with_activations(passes, key.get("activations"))

    def _check_alone(self) -> None:
        """Check that the model was loaded for one worker.

        Raises:
            InputError: It was not.
        """
        if self._workers > 1:
            raise InputError(
                f"`{self._name}` was loaded for {self._workers} workers; sessions run one step "
                "after another. Load it without `workers`."
            )

    @property
    def tokenizer(self) -> "Tokenizer":
        """Tokenizer of the vocabulary in the model's file, made at its first use.

        Raises:
            GraphError: Kind or rule of the vocabulary are not supported.
            InputError: The file is not GGUF; a package of the extra `text` is missing.
        """
        return self._find_tokenizer()

    @property
    def has_texts(self) -> bool:
        """Whether the model's file is GGUF, so that it may have a vocabulary."""
        from tightship.frontend.gguf_letters import begins_as_gguf

        return self._file is not None and begins_as_gguf(self._file)

    def _came_from(self, source: "ModelSource") -> None:
        """Note what the model was loaded from; bytes of an ONNX file need not stay for it."""
        if isinstance(source, str | PathLike) or (
            isinstance(source, bytes) and source.startswith(b"GGUF")
        ):
            self._file = source

    def _find_tokenizer(self) -> "Tokenizer":
        if self._tokenizer is None:
            if self._file is None or not self.has_texts:
                raise InputError(
                    f"`{self._name}` has no vocabulary; only GGUF files have. Load one, or "
                    "give numbers of tokens."
                )
            from tightship.text.tokenizer import Tokenizer

            self._tokenizer = Tokenizer.open(self._file)
        return self._tokenizer

    def _opened(self) -> "Sessions":
        """Return the model's sessions.

        Raises:
            InputError: The model is closed or has fixed shapes.
        """
        from tightship.model.sessions import Sessions, StepSource  # few models have sessions

        self._check_open()
        if self._variants is None:
            raise InputError(
                f"All shapes of `{self._name}` are fixed; a session needs a decoder whose "
                "number of tokens is open."
            )
        if self._sessions is None:
            stored = self._variants if isinstance(self._variants, StepSource) else None
            used = 0 if self._limit_bytes is None else self.plan.peak_bytes
            self._sessions = Sessions(
                self._decoder_file,
                stored,
                self._name,
                self._limit_bytes,
                used,
                self._find_tokenizer,
            )
        return self._sessions

    def _decoder_file(self) -> "DecoderFile":
        """Open the model's file, with its inputs and outputs and its packed weights.

        Raises:
            InputError: The model is a prepared file.
        """
        from tightship.engine.state.decoder import Declared
        from tightship.model.sessions import DecoderFile

        assert self._variants is not None, "sessions have a model with symbolic lengths"
        source = self._variants.source()
        declared = Declared(source.declared, self._outputs(), self._types())
        return DecoderFile(source, declared, source.packed or self._packed())

    def _run_growing(
        self, key: Key, inputs: Mapping[str, ArrayLike], outputs: "Mapping[str, Array]",
        limits: Limits,
    ) -> "dict[str, Array] | None":  # fmt: skip
        """Run a step of a decoder whose inputs had other lengths before; None if it is not one.

        Blocks of caches do not have a program of their own run, which would join them first.
        """
        in_blocks = self._growing and self._growing.has_blocks(inputs)
        if not in_blocks and self._open().holds(key):
            return None
        dynamic = limits.dynamic
        if limits.workers > 1 or (dynamic is not None and dynamic.limit_bytes is not None):
            return None
        if self._growing is None:
            self._growing = self._find_growing() or False
        return self._growing.run(inputs, outputs, limits) if self._growing else None

    def _find_growing(self) -> "GrowingRuns | None":
        """Return the runs of a decoder's loops; None if the model has none."""
        from tightship.engine.state.pairs import may_have_caches  # for other lengths alone

        try:
            if self._variants is None or not may_have_caches(self._variants.source().declared):
                return None
        except InputError:  # a prepared file has no graph to read
            return None
        from tightship.model.growing_runs import growing_runs_of

        with self._closing:
            return growing_runs_of(self._opened())

    def _release_rows(self) -> None:
        """Release rows that runs of other lengths have used."""
        if self._growing:
            self._growing.release_unused()

    def _close_sessions(self) -> None:
        """Release the programs of sessions; waits for steps in progress."""
        if self._sessions is not None:
            self._sessions.close()
            self._sessions = None
        self._growing = None


def copied_inputs(model: SessionOpener) -> frozenset[str]:
    """Return the inputs that most runs of a model copy anyway: caches that grow.

    `RowBlocks` for them save a copy.
    """
    return model._growing.caches if model._growing else frozenset()
