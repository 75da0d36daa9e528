"""Finds the inputs and outputs of a decoder that are one cache before and after a run."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tightship.errors import GraphError
from tightship.graph import Shape

FLAG = "use_cache_branch"
"""Input that says whether an If takes the branch with caches."""

_WORDS = re.compile(r"[A-Za-z]+|\d+")
_BEFORE = frozenset({"past", "in", "input", "old", "before", "prev"})
_AFTER = frozenset({"present", "out", "output", "new", "after", "next", "updated"})
_NEUTRAL = frozenset({"key", "keys", "value", "values", "cache", "k", "v", "state"})


class CachePair(NamedTuple):
    """Cache of a decoder.

    Attributes:
        past: Input that the cache enters by.
        present: Output that has the new rows too.
        axis: Axis of the rows.
    """

    past: str
    present: str
    axis: int


def named(name: str, session: int) -> str:
    """Return what an input or output is called that each session of a joint step has one of."""
    return f"{name}.session{session}"


def names_of_pairs(
    inputs: Mapping[str, Shape | None],
    outputs: Sequence[str],
    told: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the output that follows each cache input.

    Args:
        inputs: Inputs as the file declares them.
        outputs: Names of the outputs.
        told: Output by input, with `*` for a part that both have in common; None recognizes them by
            their names.

    Raises:
        GraphError: A name that was told does not exist.
    """
    if told is not None:
        return _told(inputs, outputs, told)
    after = {_key(name, _AFTER): name for name in outputs if _marks(name) & _AFTER}
    pairs: dict[str, str] = {}
    for name, shape in inputs.items():
        if not _is_cache(name, shape):
            continue
        found = after.get(_key(name, _BEFORE))
        if found is not None and found not in pairs.values():
            pairs[name] = found
    return pairs


def may_have_caches(inputs: Mapping[str, Shape | None]) -> bool:
    """Whether an input has the name and the rank of a cache; outputs tell the rest."""
    return any(_is_cache(name, shape) for name, shape in inputs.items())


def _is_cache(name: str, shape: Shape | None) -> bool:
    return shape is not None and len(shape) >= 3 and bool(_marks(name) & _BEFORE)


def _told(
    inputs: Mapping[str, Shape | None], outputs: Sequence[str], told: Mapping[str, str]
) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for before, after in told.items():
        pattern = re.compile(re.escape(before).replace(r"\*", "(.*)"))
        matches = [found for name in inputs if (found := pattern.fullmatch(name))]
        if not matches:
            raise GraphError(
                f"`state` names the input `{before}`, which the model lacks; its inputs are "
                f"{', '.join(inputs)}."
            )
        for match in matches:
            name = after
            for part in match.groups():
                name = name.replace("*", part, 1)
            if name not in outputs:
                raise GraphError(
                    f"`state` names the output `{name}` for the input `{match.string}`, which the "
                    f"model lacks; its outputs are {', '.join(outputs)}."
                )
            pairs[match.string] = name
    return pairs


def _marks(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(name))


def _key(name: str, marks: frozenset[str]) -> tuple[str, ...]:
    """Return the words of a name that tell its cache from the others."""
    words = [word.lower() for word in _WORDS.findall(name)]
    words = [word for word in words if word not in marks]
    if "key" in words and "values" in words and words.index("key") + 1 == words.index("values"):
        place = words.index("key")
        del words[place : place + 2]  # `past_key_values.0.key` is `present.0.key`
    return tuple(word.removesuffix("s") if word in _NEUTRAL else word for word in words)
