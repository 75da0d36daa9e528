"""Numbers of an encoder that the metadata of its GGUF file has."""

from dataclasses import dataclass

from tightship.errors import GraphError
from tightship.frontend.gguf.metadata import Metadata
from tightship.frontend.gguf.parameters import HEADS_MAX, LAYERS_MAX, WIDTH_MAX
from tightship.frontend.gguf.pooling import BERT, KEY, pooling_of

READ = (
    "attention.causal", "attention.head_count", "attention.layer_norm_epsilon", "block_count",
    "embedding_length", "feed_forward_length", KEY,
)  # fmt: skip
"""Keys that are read."""
IDLE = ("classifier.output_labels", "context_length", "vocab_size")
"""Keys that change no result."""


@dataclass(frozen=True, slots=True)
class EncoderParameters:
    """Sizes of an encoder.

    Attributes:
        layers: Number of layers.
        width: Elements of a token between layers.
        inner: Elements between the products of a feed-forward.
        heads: Heads of attention.
        epsilon: Addend of normalizations.
        scores_pairs: Whether the model scores pairs of texts, rather than giving vectors.
    """

    layers: int
    width: int
    inner: int
    heads: int
    epsilon: float
    scores_pairs: bool


def read_encoder_parameters(metadata: Metadata) -> EncoderParameters:
    """Read the numbers of an encoder of the architecture `bert`.

    Raises:
        FormatError: A number is missing, or outside its range.
        GraphError: An option of the model is not supported.
    """
    found = Metadata(metadata.path, metadata.fields, BERT)
    known = {*READ, *IDLE}
    for key in metadata.fields:
        short = key.removeprefix(f"{BERT}.")
        if short != key and short not in known:
            raise GraphError(
                f"`{metadata.path}` has the key `{key}`, which is not supported for the "
                f"architecture `{BERT}`; supported are {', '.join(sorted(known))}. Use a model "
                "without it."
            )
    if found.flag("attention.causal", default=False):
        raise found.refusal("attention.causal", found="true", wanted="false, for an encoder")
    width = found.integer("embedding_length", most=WIDTH_MAX)
    heads = found.integer("attention.head_count", most=HEADS_MAX)
    if width % heads:
        raise found.refusal("attention.head_count", heads, f"a divisor of {width}, the width")
    return EncoderParameters(
        found.integer("block_count", most=LAYERS_MAX),
        width,
        found.integer("feed_forward_length", most=WIDTH_MAX),
        heads,
        found.number("attention.layer_norm_epsilon"),
        pooling_of(metadata) == "rank",
    )
