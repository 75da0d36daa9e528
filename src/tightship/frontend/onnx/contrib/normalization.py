"""Normalizations of the domain com.microsoft, and those that it puts into ONNX's."""

from tightship.frontend.onnx.contrib.spelling import Spelling

EPSILON = 1e-12
"""What the skipping normalizations take for `epsilon` if they do not say."""


def layer_normalization(s: Spelling) -> None:
    """ONNX's own, in a file of an opset that had none yet."""
    found = s.many("LayerNormalization", len(s.node.output), *s.node.input, **s.others())
    for index, name in enumerate(found):
        s.give(index, name)


def simplified_layer_normalization(s: Spelling) -> None:
    """By the root of the mean square."""
    s.refuse_outputs({1: "inv_std_var"})
    attributes = {"axis": s.integer("axis", -1), "epsilon": s.number("epsilon", 1e-5)}
    s.give(0, s("RMSNormalization", s.input(0), s.input(1), **attributes))


def skip_layer_normalization(s: Spelling) -> None:
    """Of input, skip and bias together; their sum is an output too."""
    s.refuse_outputs({1: "mean", 2: "inv_std_var"})
    total = _total(s, s.input(4))
    s.give(0, s("LayerNormalization", total, s.input(2), s.input(3), axis=-1,
                epsilon=s.number("epsilon", EPSILON)))  # fmt: skip
    s.give(3, total)


def skip_simplified_layer_normalization(s: Spelling) -> None:
    """As SkipLayerNormalization, by the root of the mean square."""
    s.refuse_outputs({1: "mean", 2: "inv_std_var"})
    total = _total(s, s.input(3))
    s.give(0, s("RMSNormalization", total, s.input(2), axis=-1,
                epsilon=s.number("epsilon", EPSILON)))  # fmt: skip
    s.give(3, total)


def _total(s: Spelling, bias: str) -> str:
    x = s("Add", s.input(0), s.input(1))
    return s("Add", x, bias) if bias else x


def embed_layer_normalization(s: Spelling) -> None:
    """Rows of three tables by word, position and segment, added and normalized."""
    ids, segments, words, positions, segment_table, scale, shift, mask, places = (
        s.input(index) for index in range(9)
    )
    if places:
        rows = s("Gather", positions, places)
    else:
        steps = s("Squeeze", s("Shape", ids, start=1, end=2))
        rows = s("Gather", positions, s("Range", s.constant(0), steps, s.constant(1)))
    x = s("Add", s("Gather", words, ids), rows)
    if segments and segment_table:
        x = s("Add", x, s("Gather", segment_table, segments))
    s.give(0, s("LayerNormalization", x, scale, shift, axis=-1,
                epsilon=s.number("epsilon", EPSILON)))  # fmt: skip
    if s.wants(1):
        s.give(1, _lengths(s, ids, mask))
    s.give(2, x)


def _lengths(s: Spelling, ids: str, mask: str) -> str:
    """How many tokens of each row the mask keeps; 0 without a mask."""
    axis = s.constant([1])
    kept = mask or s("Mul", s("Cast", ids, to=6), s.constant(0, "int32"))
    return s("Cast", s("ReduceSum", kept, axis, keepdims=0), to=6)


NORMALIZATIONS = {
    "EmbedLayerNormalization": embed_layer_normalization,
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    "SkipLayerNormalization": skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": skip_simplified_layer_normalization,
}
"""By operator."""
