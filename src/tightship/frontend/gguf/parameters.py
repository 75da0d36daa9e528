"""Numbers of a decoder that the metadata of its GGUF file has."""

from dataclasses import dataclass

from tightship.errors import GraphError
from tightship.frontend.gguf.architectures import (
    ARCHITECTURES,
    COMMON,
    IDLE,
    ZERO,
    Architecture,
)
from tightship.frontend.gguf.metadata import Metadata

LAYERS_MAX = 1 << 12
HEADS_MAX = 1 << 12
WIDTH_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotation of queries and keys by their positions.

    Attributes:
        length: Elements of a head that are rotated, from the first on.
        base: Base of the angles' powers.
        factor: Number that positions are divided by.
        are_neighbours: Whether pairs are neighbours.
    """

    length: int
    base: float
    factor: float
    are_neighbours: bool


@dataclass(frozen=True, slots=True)
class Parameters:
    """Sizes of a decoder.

    Attributes:
        kind: Its architecture.
        layers: Number of layers.
        width: Elements of a token between layers.
        inner: Elements between the products of a feed-forward.
        heads: Heads of queries.
        shared: Heads of keys and values.
        length: Elements of a head.
        epsilon: Addend of normalizations.
        rotary: Rotation.
    """

    kind: Architecture
    layers: int
    width: int
    inner: int
    heads: int
    shared: int
    length: int
    epsilon: float
    rotary: Rotary


def read_parameters(metadata: Metadata) -> Parameters:
    """Read the numbers of a decoder.

    Raises:
        FormatError: A number is missing, or outside its range.
        GraphError: The architecture or one of its options is not supported.
    """
    name = metadata.text("general.architecture")
    kind = ARCHITECTURES.get(name)
    if kind is None:
        raise GraphError(
            f"`{metadata.path}` has the architecture `{name}`, which is not supported; supported "
            f"are {', '.join(ARCHITECTURES)}. Use a model of one of these."
        )
    found = Metadata(metadata.path, metadata.fields, name)
    _refuse_unknown(found, kind)
    width = found.integer("embedding_length", most=WIDTH_MAX)
    heads = _same_for_all(found, "attention.head_count")
    shared = _same_for_all(found, "attention.head_count_kv", heads)
    if heads % shared:
        raise found.refusal("attention.head_count_kv", shared, f"a divisor of {heads} heads")
    length = found.integer("attention.key_length", width // heads or None, most=WIDTH_MAX)
    if found.integer("attention.value_length", length, most=WIDTH_MAX) != length:
        raise found.refusal(
            "attention.value_length", found.integer("attention.value_length"),
            f"{length}, as long as keys",
        )  # fmt: skip
    return Parameters(
        kind,
        found.integer("block_count", most=LAYERS_MAX),
        width,
        _same_for_all(found, "feed_forward_length", most=WIDTH_MAX),
        heads,
        shared,
        length,
        found.number("attention.layer_norm_rms_epsilon"),
        _rotary(found, kind, length),
    )


def _refuse_unknown(metadata: Metadata, kind: Architecture) -> None:
    """Refuse keys of the architecture that are neither read nor without effect.

    Raises:
        GraphError: There is one.
    """
    known = {*COMMON, *IDLE, *kind.keys, *kind.idle}
    for key, value in metadata.fields.items():
        short = key.removeprefix(f"{kind.name}.")
        if short == key or short in known or (short in ZERO and value == 0):
            continue
        raise GraphError(
            f"`{metadata.path}` has the key `{key}`, which is not supported for the architecture "
            f"`{kind.name}`; supported are {', '.join(sorted(known))}. Use a model without it."
        )


def _same_for_all(
    metadata: Metadata, key: str, default: int | None = None, most: int = HEADS_MAX
) -> int:
    """Return a number that all layers have in common, given once or for each layer.

    Raises:
        FormatError: It is not a number, or layers differ.
    """
    listed = metadata.list_of_integers(key)
    if listed is None:
        return metadata.integer(key, default, most=most)
    if len(set(listed)) != 1 or not 1 <= listed[0] <= most:
        raise metadata.refusal(key, f"{len(set(listed))} numbers", "one number for all layers")
    return listed[0]


def _rotary(metadata: Metadata, kind: Architecture, length: int) -> Rotary:
    rotated = metadata.integer("rope.dimension_count", length, most=length)
    if rotated % 2:
        raise metadata.refusal("rope.dimension_count", rotated, f"an even number up to {length}")
    scaling = metadata.text("rope.scaling.type", "none")
    if scaling not in ("none", "linear"):
        raise GraphError(
            f"`{metadata.path}` scales positions by the rule `{scaling}`, which is not supported; "
            "supported are none, linear, and the factors of the tensor `rope_freqs.weight`. Use "
            "a model with one of these."
        )
    factor = metadata.number("rope.scaling.factor", 1.0) if scaling == "linear" else 1.0
    base = metadata.number("rope.freq_base", 10_000.0)
    return Rotary(rotated, base, factor, kind.pairs_are_neighbours)
