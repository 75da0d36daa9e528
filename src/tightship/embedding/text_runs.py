"""Runs of an encoder on texts of any lengths, by a few programs that are made at the start."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship._core import StopFlag
from tightship.embedding.buckets import Bucket, buckets_of, runs_of
from tightship.embedding.encoded_texts import Encoded
from tightship.embedding.encoder_file import EncoderFile
from tightship.errors import CapacityError, GraphError, InputError
from tightship.frontend.gguf_letters import begins_as_gguf
from tightship.loading import load
from tightship.loading.activations import Activations
from tightship.model import Model
from tightship.quantity import format_bytes

Array = NDArray[np.float32]
IDS, MASK, KINDS = "input_ids", "attention_mask", "token_type_ids"
"""Names of inputs that exports have in common; the last may be missing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a run.

    Attributes:
        places: Places of the texts among those given.
        lengths: Tokens of each.
        values: What the model gives, `[rows, ...]`; the first rows are those of the texts.
    """

    places: list[int]
    lengths: list[int]
    values: Array


class TextRuns:
    """Runs of one encoder, one at a time. May be used from several threads.

    Attributes:
        model: The model.
        file: Its file.
        buckets: Shapes for which there are programs; no others are ever made.
        peak_bytes: Most memory that the model takes with all of these.
    """

    def __init__(self, model: Model, file: EncoderFile) -> None:
        """Make the programs of all buckets that the limit of loading holds.

        Args:
            model: Model, loaded for a text of the whole context; closed by its owner.
            file: Its file.

        Raises:
            CapacityError: Not even the program for one text of the whole context fits.
            GraphError: The model is not an encoder of texts.
        """
        self.model, self.file = model, file
        self._check_inputs()
        self._lock = threading.Lock()
        before = model.programs
        self.buckets: list[Bucket] = []
        for bucket in buckets_of(file.context):
            if not self._make(bucket):
                break
        made = model.programs
        more = made.bytes + made.run_bytes - before.bytes - before.run_bytes
        self.peak_bytes = model.plan.peak_bytes + max(more, 0)

    def _check_inputs(self) -> None:
        """Check that the inputs are those of an encoder.

        Raises:
            GraphError: They are not.
        """
        names = set(self.model.input_names)
        if not {IDS, MASK} <= names or names - {IDS, MASK, KINDS}:
            raise GraphError(
                f"`{self.file.path}` has the inputs {', '.join(sorted(names))}; an encoder has "
                f"`{IDS}`, `{MASK}` and perhaps `{KINDS}`. Export it with these, or run it with "
                "`tightship.load`."
            )

    def _make(self, bucket: Bucket) -> bool:
        """Make a program; False if it takes the place of another, which then is made again.

        Raises:
            CapacityError: It does not fit by itself, and is the first.
        """
        try:
            self._ask_for(bucket)
        except CapacityError:
            if not self.buckets:
                raise
            return False
        if self.model.programs.held < len(self.buckets) + 1:
            for each in self.buckets:
                self._ask_for(each)
            return False
        self.buckets.append(bucket)
        return True

    def _ask_for(self, bucket: Bucket) -> None:
        shapes = dict.fromkeys(self.model.input_names, (bucket.rows, bucket.length))
        for _ in range(2):  # a program that was asked for once would make way for the next
            self.model.output_shapes(shapes)

    def fitting(self, encoded: Encoded, place: int, *, truncate: bool, kept: int = 0) -> Encoded:
        """Return the tokens of a text if the context holds them.

        Args:
            encoded: Tokens of the text.
            place: Its place among those given, for the error.
            truncate: Whether a longer text is cut, but for its last token, which ends it.
            kept: Tokens that must stay.

        Raises:
            InputError: The text is too long, or empty.
        """
        context = self.file.context
        if not encoded.tokens:
            raise InputError(f"Text {place} has no tokens; give a text that is not empty.")
        if len(encoded) <= context:
            return encoded
        if not truncate or kept >= context:
            raise InputError(
                f"Text {place} has {len(encoded)} tokens; the model takes {context}. Shorten it, "
                "or let it be truncated."
            )
        tokens, kinds = encoded.tokens, encoded.kinds
        cut = context - 1
        return Encoded([*tokens[:cut], tokens[-1]], [*kinds[:cut], kinds[-1]])

    def run(
        self, texts: Sequence[Encoded], output: str, stop: StopFlag | None = None
    ) -> Iterator[Ran]:
        """Run the model on texts, those of similar lengths together.

        Args:
            texts: Tokens of the texts, none longer than the context.
            output: Name of the output to return.
            stop: Flag that ends the runs when another thread sets it.

        Raises:
            InputError: The model is closed.
            StoppedError: The flag was set.
        """
        for bucket, places in runs_of([len(each) for each in texts], self.buckets):
            inputs = self._inputs([texts[place] for place in places], bucket)
            with self._lock:
                values = self.model.run(inputs, stop=stop)[output]
            yield Ran(places, [len(texts[place]) for place in places], values)

    def _inputs(self, texts: Sequence[Encoded], bucket: Bucket) -> Mapping[str, NDArray[np.int64]]:
        """Return the arrays of a run; rows without a text show their first token alone."""
        shape = bucket.rows, bucket.length
        found = {name: np.zeros(shape, np.int64) for name in self.model.input_names}
        found[MASK][:, 0] = 1
        for row, each in enumerate(texts):
            found[IDS][row, : len(each)] = each.tokens
            found[MASK][row, : len(each)] = 1
            if KINDS in found:
                found[KINDS][row, : len(each)] = each.kinds
        return found


def load_encoder(
    file: EncoderFile, *, max_memory: str | int | None, threads: int | None,
    activations: Activations | None, share: bool,
) -> Model:  # fmt: skip
    """Load the model of a file for a text of the whole context.

    Raises:
        CapacityError: It does not fit `max_memory`.
        FormatError, GraphError, InputError: As `tightship.load`.
    """
    first = buckets_of(file.context)[0]
    shapes = dict.fromkeys(_input_names(file), (first.rows, first.length))
    try:
        return load(file.path, shapes=shapes, max_memory=max_memory, threads=threads,
                    activations=activations, share=share)  # fmt: skip
    except CapacityError as error:
        raise CapacityError(
            f"`{file.path.name}` needs {format_bytes(error.needed_bytes)} for one text of "
            f"{file.context} tokens, more than the limit of {format_bytes(error.limit_bytes)}. "
            "Raise the limit, or ask for a smaller `context`.",
            needed_bytes=error.needed_bytes,
            limit_bytes=error.limit_bytes,
        ) from None


def _input_names(file: EncoderFile) -> Iterable[str]:
    """Return the names of a model's inputs, those of all GGUF files without opening it.

    Raises:
        FormatError, GraphError: The file cannot be read.
    """
    if begins_as_gguf(file.path):
        return IDS, MASK, KINDS
    from tightship.loading.opening import open_model

    return open_model(file.path).declared
