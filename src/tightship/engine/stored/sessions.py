"""Programs of sessions within a prepared model: by what choices they are found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from tightship.engine.state.cache_types import CacheType
from tightship.engine.state.step_choices import StepChoices
from tightship.engine.stored import fields
from tightship.engine.stored.container import damaged
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.steps import StoredSteps, steps_within
from tightship.errors import InputError

CACHE_TYPES: dict[str, CacheType] = {kind: kind for kind in get_args(CacheType)}


@dataclass(frozen=True, slots=True)
class StoredSessions:
    """Sets of programs in one file, each for sessions of other choices.

    Attributes:
        model: The file.
        choices: Choices of each set.
    """

    model: StoredModel
    choices: Sequence[StepChoices]

    @staticmethod
    def of(model: StoredModel) -> "StoredSessions":
        """Read the choices of each set.

        Raises:
            FormatError: The file is damaged.
        """
        try:
            return StoredSessions(model, [_choices(said) for said, _, _ in model.sessions])
        except MalformedError as error:
            raise damaged(model.path, str(error).rstrip(".")) from None

    def steps(self, choices: StepChoices) -> StoredSteps:
        """Return the programs for sessions, whose chunk may be larger or smaller.

        Raises:
            FormatError: The file is damaged.
            InputError: It has none; the message says which it has, and how to prepare these.
        """
        for index, each in enumerate(self.choices):
            if each._replace(chunk=choices.chunk) == choices:
                return self.at(index)
        raise InputError(self._without(choices))

    def at(self, index: int) -> StoredSteps:
        """Return a set of programs.

        Raises:
            FormatError: The file is damaged.
        """
        _, start, size = self.model.sessions[index]
        found = steps_within(self.model.part(start, size))
        if found.sizes != self.choices[index].sizes:
            raise damaged(self.model.path, "programs of sessions are not those of their choices")
        return found

    def _without(self, choices: StepChoices) -> str:
        """Word the refusal of choices that have no programs."""
        has = "; it has those of " + "; of ".join(map(_described, self.choices))
        contexts = {each.context for each in self.choices} | {choices.context}
        keys = self.model.keys if len(self.model.keys) > 1 or choices.batch > 1 else ()
        command = self.model.command(keys, contexts=tuple(contexts), cache=choices.cache)
        can_be = choices.last and choices.grows and not (choices.state or choices.extra)
        prepare = f"prepare it with them, `{command}`, or " if can_be else ""
        remedy = f"{prepare}load the ONNX file with `share=True`"
        return (
            f"`{self.model.path}` has no programs for sessions of {_described(choices)}"
            f"{has if self.choices else ''}. {remedy[0].upper()}{remedy[1:]}, which shares the "
            "weights as well, and takes all choices."
        )


def _described(choices: StepChoices) -> str:
    """Describe choices as far as they are not the usual ones."""
    said = [f"{choices.context} tokens"]
    said += [f"a batch of {choices.batch}"] if choices.batch > 1 else []
    said += [f"caches of {choices.cache}"] if choices.cache else []
    said += [] if choices.last else ["logits of all rows"]
    said += ["caches by name"] if choices.state else []
    said += [f"`{name}` {list(shape)}" for name, shape in choices.extra]
    return ", ".join(said)


def choices_json(choices: StepChoices) -> dict[str, object]:
    """Describe choices."""
    return {
        "context": choices.context,
        "batch": choices.batch,
        "chunk": choices.chunk,
        "last": choices.last,
        "grows": choices.grows,
        "state": None if choices.state is None else [list(pair) for pair in choices.state],
        "extra": [[name, list(shape)] for name, shape in choices.extra],
        "cache": choices.cache,
    }


def _choices(value: object) -> StepChoices:
    context, batch, chunk, last, grows, state, extra, cache = fields.record(
        value, "context", "batch", "chunk", "last", "grows", "state", "extra", "cache"
    )
    if cache is not None and fields.text(cache) not in CACHE_TYPES:
        raise MalformedError("a cache has no known type")
    pairs = None if state is None else [fields.items(row, 2) for row in fields.items(state)]
    shapes = [fields.items(row, 2) for row in fields.items(extra)]
    return StepChoices(
        fields.integer(context, 1),
        fields.integer(batch, 1),
        fields.integer(chunk, 1),
        fields.flag(last),
        fields.flag(grows),
        None if pairs is None else tuple((fields.text(a), fields.text(b)) for a, b in pairs),
        tuple((fields.text(name), fields.integers(shape)) for name, shape in shapes),
        None if cache is None else CACHE_TYPES[fields.text(cache)],
    )
