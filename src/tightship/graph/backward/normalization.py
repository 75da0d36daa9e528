"""Gradients of normalizations, which read the input and the statistics that the forward saved."""

from collections.abc import Iterator, Mapping

from tightship.graph.backward.site import Rule, Site

_Gradients = Iterator[tuple[int, str]]


def _given(at: Site) -> _Gradients:
    """Batch normalization by statistics that are given: they have no gradient."""
    if at.integer("training_mode", 0):
        raise at.refusal("needs the statistics of the batch; see `with_batch_statistics`")
    yield from _batch(at, at.x(3), at.x(4), is_training=0)


def _by_batch(at: Site) -> _Gradients:
    """Batch normalization by the statistics of the batch, which it writes."""
    yield from _batch(at, at.node.outputs[1], at.node.outputs[2], is_training=1)


def _batch(at: Site, mean: str, variance: str, *, is_training: int) -> _Gradients:
    keep = (at.wants(0), at.wants(1), at.wants(2))
    if not any(keep):
        return
    found = at.own(
        "BatchNormalizationGrad", at.dy, at.x(0), at.x(1), mean, variance,
        keep=keep, training_mode=is_training,
    )  # fmt: skip
    yield from ((index, found[index]) for index in (2, 1, 0) if found[index])


def _layer(at: Site) -> _Gradients:
    """Reads the input, its means and inverse deviations."""
    keep = (at.wants(0), at.wants(1), at.wants(2))
    if not any(keep):
        return
    dtype, shape = at.type(at.x(0))
    axis = at.integer("axis", -1) % len(shape)
    rows = (*shape[:axis], *(1 for _ in shape[axis:]))
    mean, inverse = (at.tape.save(at.node, index, (dtype, rows)) for index in (1, 2))
    found = at.own("LayerNormalizationGrad", at.dy, at.x(0), at.x(1), mean, inverse, keep=keep)
    yield from ((index, found[index]) for index in (2, 1, 0) if found[index])


NORMALIZATIONS: Mapping[str, Rule] = {"BatchNormalization": _given, "LayerNormalization": _layer}
OWN_NORMALIZATIONS: Mapping[str, Rule] = {"BatchNormalizationTraining": _by_batch}
"""Of `DOMAIN`."""
