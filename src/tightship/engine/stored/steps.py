"""Stored programs of a decoder's sessions, over the packed weights of the decoder's own file."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import NamedTuple

from tightship.engine.compile.compile_graph import Settings
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.state.decoder import Declared, Decoder
from tightship.engine.state.pairs import named
from tightship.engine.stored import fields
from tightship.engine.stored.container import damaged
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.read_program import DTYPES
from tightship.engine.weights.weight_store import PackedCopy
from tightship.graph import DType, Shape


class StoredSteps(NamedTuple):
    """Programs for 1, 2, 4, ... new tokens.

    Attributes:
        model: The programs.
        declared: Inputs and outputs of the decoder's file.
        sizes: New tokens of each program.
        digest: Digest of the decoder, whatever the context.
    """

    model: StoredModel
    declared: Declared
    sizes: tuple[int, ...]
    digest: str

    @property
    def settings(self) -> Settings:
        """Settings that the programs were made with."""
        made = self.model.compatibility
        return Settings(threads=made.threads, without=made.without)

    @property
    def copies(self) -> tuple[PackedCopy, ...]:
        """Packed weights that the programs use, those of the decoder's own file first."""
        return self.model.copies

    def compiled(self, steps: int, decoder: Decoder) -> CompiledModel:
        """Return the program for a number of new tokens, ready to be built.

        Args:
            steps: New tokens.
            decoder: The decoder, whose caches the program is run on.

        Raises:
            FormatError: The file is damaged, or stale.
        """
        found = self.model.prepared(self.sizes.index(steps))
        _check_caches(self.model, found, decoder, [lambda name: name])
        return found

    def joint(self, path: str | PathLike[str], count: int, decoder: Decoder) -> CompiledModel:
        """Return the program for a token of each of some sessions, ready to be built.

        Args:
            path: File of `save_steps` over the weights of these programs.
            count: Number of sessions.
            decoder: The decoder, whose caches the program is run on.

        Raises:
            FormatError: The file is damaged, or stale.
            OSError: The file cannot be read.
        """
        model = StoredModel(path, self.copies)
        found = model.prepared(0)
        _check_caches(model, found, decoder, [partial(named, session=i) for i in range(count)])
        return found


def _check_caches(
    model: StoredModel,
    found: CompiledModel,
    decoder: Decoder,
    names: Sequence[Callable[[str], str]],
) -> None:
    """Check that a program has the caches of sessions, by functions that name those of each.

    Raises:
        FormatError: It does not.
    """
    lowered = found.placement.lowered
    inputs, outputs = ({n: (o.dtype, o.shape) for n, o in ports.items()}
                       for ports in (lowered.inputs, lowered.outputs))  # fmt: skip
    if decoder.logits not in outputs or any(
        not inputs.get(name(each.pair.past))
        == outputs.get(name(each.pair.present))
        == (each.dtype, each.shape)
        for each in decoder.caches
        for name in names
    ):
        raise damaged(model.path, "a program of sessions does not have their caches")


def read_steps(path: str | PathLike[str], base: StoredModel) -> StoredSteps:
    """Open stored programs of sessions.

    Args:
        path: File of `save_steps`.
        base: The decoder's own prepared file.

    Raises:
        FormatError: The file is damaged.
        OSError: The file cannot be read.
    """
    return steps_within(StoredModel(path, base.copies))


def steps_within(model: StoredModel) -> StoredSteps:
    """Return the programs of sessions that are those of a file, or of a part.

    Raises:
        FormatError: The file is damaged.
    """
    try:
        return _steps(model)
    except MalformedError as error:
        raise damaged(model.path, str(error).rstrip(".")) from None


def _steps(model: StoredModel) -> StoredSteps:
    inputs, outputs, types, sizes, digest = fields.record(
        model.steps, "inputs", "outputs", "types", "sizes", "digest"
    )
    declared = Declared(shapes_of(inputs), shapes_of(outputs), types_of(types))
    found = StoredSteps(model, declared, fields.integers(sizes), fields.text(digest))
    if declared.types.keys() != declared.inputs.keys():
        raise MalformedError("its inputs do not have a type each")
    if len(found.sizes) != len(model.keys):
        raise MalformedError("its programs are not those for its numbers of tokens")
    return found


def steps_json(declared: Declared, sizes: Sequence[int], digest: str) -> dict[str, object]:
    """Describe what a session has to know of its programs."""
    return {
        "inputs": shapes_json(declared.inputs),
        "outputs": shapes_json(declared.outputs),
        "types": [[name, dtype.value] for name, dtype in declared.types.items()],
        "sizes": list(sizes),
        "digest": digest,
    }


def shapes_json(shapes: Mapping[str, Shape | None]) -> list[object]:
    """Describe shapes by name; a symbolic length is its text."""
    return [
        [name, None if shape is None else
         [d if d is None or isinstance(d, int) else str(d) for d in shape]]
        for name, shape in shapes.items()
    ]  # fmt: skip


def shapes_of(value: object) -> dict[str, Shape | None]:
    """Read what `shapes_json` describes.

    Raises:
        MalformedError: It is something else.
    """
    rows = [fields.items(row, 2) for row in fields.items(value)]
    return {fields.text(name): _shape(shape) for name, shape in rows}


def _shape(value: object) -> Shape | None:
    if value is None:
        return None
    return tuple([d if d is None or isinstance(d, str) else fields.integer(d)
                  for d in fields.items(value)])  # fmt: skip


def types_of(value: object) -> dict[str, DType]:
    """Read element types by name, each as `DType` names it.

    Raises:
        MalformedError: The value is something else.
    """
    rows = [fields.items(row, 2) for row in fields.items(value)]
    named = {fields.text(name): fields.text(dtype) for name, dtype in rows}
    if not DTYPES.keys() >= set(named.values()):
        raise MalformedError("an input has no known type")
    return {name: DTYPES[dtype] for name, dtype in named.items()}
