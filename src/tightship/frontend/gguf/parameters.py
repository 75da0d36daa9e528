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
from tightship.frontend.gguf.pooling import BERT
from tightship.frontend.gguf.rotary import Rotary, read_rotary
from tightship.frontend.gguf.windows import Windows, read_windows

LAYERS_MAX = 1 << 12
HEADS_MAX = 1 << 12
WIDTH_MAX = 1 << 20
GEMMA_27B_LAYERS = 62
"""Layers of the one Gemma 3 whose scores are scaled by the width over the heads."""
CAP = "final_logit_softcapping"


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
        scale: Factor of scores.
        rotary: Rotation in layers without a window.
        windows: Windows of keys.
        embedding_scale: Factor of embeddings.
        cap: Largest magnitude of logits, which a hyperbolic tangent bounds; 0 for none.
    """

    kind: Architecture
    layers: int
    width: int
    inner: int
    heads: int
    shared: int
    length: int
    epsilon: float
    scale: float
    rotary: Rotary
    windows: Windows
    embedding_scale: float
    cap: float


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
            f"are {', '.join(ARCHITECTURES)} and {BERT}. Use a model of one of these."
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
    rotary = read_rotary(found, length, are_neighbours=kind.pairs_are_neighbours)
    layers = found.integer("block_count", most=LAYERS_MAX)
    is_gemma = kind.has_gemma_parts
    scaled = width // heads if is_gemma and layers == GEMMA_27B_LAYERS else length
    return Parameters(
        kind,
        layers,
        width,
        _same_for_all(found, "feed_forward_length", most=WIDTH_MAX),
        heads,
        shared,
        length,
        found.number("attention.layer_norm_rms_epsilon"),
        scaled**-0.5,
        rotary,
        read_windows(found, layers, rotary, is_gemma=is_gemma),
        width**0.5 if is_gemma else 1.0,
        found.number(CAP) if is_gemma and found.has(CAP) else 0.0,
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
