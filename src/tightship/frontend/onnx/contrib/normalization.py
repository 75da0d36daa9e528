"""Normalizations of the domain com.microsoft, and those it adds to ONNX's domain."""

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import Translation

EPSILON = 1e-12
"""Default of `epsilon` in the normalizations with a skip connection."""


def layer_normalization(s: Pattern) -> None:
    """Write ONNX's own operator, for files of opsets that lack it."""
    found = s.many("LayerNormalization", len(s.node.output), *s.inputs(),
                   **s.present("axis", "epsilon", "stash_type"))  # fmt: skip
    for index, name in enumerate(found):
        s.give(index, name)


def simplified_layer_normalization(s: Pattern) -> None:
    """Decompose it to normalization by the root of the mean square."""
    attributes = {"axis": s.integer("axis"), "epsilon": s.number("epsilon")}
    more = s.present("stash_type")
    s.give(0, s("RMSNormalization", s.input(0), s.input(1), **attributes, **more))


def skip_layer_normalization(s: Pattern) -> None:
    """Decompose the normalization of input, skip and bias; their sum is an output too."""
    total = _total(s, s.input(4))
    s.give(0, s("LayerNormalization", total, s.input(2), s.input(3), axis=-1,
                epsilon=s.number("epsilon")))  # fmt: skip
    s.give(3, total)


def skip_simplified_layer_normalization(s: Pattern) -> None:
    """Decompose it as SkipLayerNormalization, by the root of the mean square."""
    total = _total(s, s.input(3))
    s.give(0, s("RMSNormalization", total, s.input(2), axis=-1,
                epsilon=s.number("epsilon")))  # fmt: skip
    s.give(3, total)


def _total(s: Pattern, bias: str) -> str:
    x = s("Add", s.input(0), s.input(1))
    return s("Add", x, bias) if bias else x


def embed_layer_normalization(s: Pattern) -> None:
    """Decompose the normalized sum of embeddings of words, positions and segments."""
    ids, segments, words, positions, segment_table, scale, shift, mask, places = (
        s.input(index) for index in range(9)
    )
    if places:
        rows = s("Gather", positions, places)
    else:
        steps = s("Squeeze", s("Shape", ids, start=1, end=2))
        rows = s("Gather", positions, s("Range", s.constant(0), steps, s.constant(1)))
    x = s("Add", s("Gather", words, ids), rows)
    if bool(segments) != bool(segment_table):
        raise s.refusal("one of `segment_ids` and `segment_embedding`", "give both or none")
    if segments:
        x = s("Add", x, s("Gather", segment_table, segments))
    s.give(0, s("LayerNormalization", x, scale, shift, axis=-1,
                epsilon=s.number("epsilon")))  # fmt: skip
    if s.wants(1):
        s.give(1, _lengths(s, ids, mask))
    s.give(2, x)


def _lengths(s: Pattern, ids: str, mask: str) -> str:
    """Return the number of tokens of each row in the mask; 0 without a mask."""
    axis = s.constant([1])
    kept = mask or s("Mul", s("Cast", ids, to=6), s.constant(0, "int32"))
    return s("Cast", s("ReduceSum", kept, axis, keepdims=0), to=6)


_SKIPPED = "output !mean !inv_std_var input_skip_bias_sum?"
NORMALIZATIONS = {
    "EmbedLayerNormalization": Translation(
        embed_layer_normalization,
        "input_ids segment_ids? word_embedding position_embedding segment_embedding? gamma beta "
        "mask? position_ids?",
        "output mask_index? embedding_sum?",
        {"epsilon": EPSILON},
        idle={"mask_index_type": "repeats the element type of mask_index"},
    ),
    "SimplifiedLayerNormalization": Translation(
        simplified_layer_normalization,
        "X scale",
        "Y !inv_std_var",
        {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    ),
    "SkipLayerNormalization": Translation(
        skip_layer_normalization, "input skip gamma beta? bias?", _SKIPPED, {"epsilon": EPSILON}
    ),
    "SkipSimplifiedLayerNormalization": Translation(
        skip_simplified_layer_normalization,
        "input skip gamma bias?",
        _SKIPPED,
        {"epsilon": EPSILON},
    ),
}
"""Translations by operator."""
OLD_LAYER_NORMALIZATION = Translation(
    layer_normalization,
    "X Scale B?",
    "Y Mean? InvStdDev?",
    {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
)
