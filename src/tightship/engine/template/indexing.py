"""Shapes of what indices choose, and of where the best are."""

from tightship.engine.template.site import NoRuleError, Rule, Shape, Site


def _gather(site: Site) -> list[Shape]:
    shape, axis = site.shape(), site.integer("axis", 0)
    axis = axis % len(shape)
    return [(*shape[:axis], *site.shape(1), *shape[axis + 1 :])]


def _gather_elements(site: Site) -> list[Shape]:
    return [site.shape(1)]


def _gather_tuples(site: Site) -> list[Shape]:
    shape, indices = site.shape(), site.shape(1)
    return [(*indices[:-1], *shape[site.integer("batch_dims", 0) + int(indices[-1]) :])]


def _best(site: Site) -> list[Shape]:
    shape = site.shape()
    count = site.integers("", 1) if len(site.node.inputs) > 1 else (site.integer("k", 0),)
    if count is None:
        raise NoRuleError
    axis = site.integer("axis", -1) % len(shape)
    if not 0 < count[0] <= shape[axis]:
        raise NoRuleError
    return [(*shape[:axis], count[0], *shape[axis + 1 :])] * 2


def _position(site: Site) -> list[Shape]:
    shape = site.shape()
    axis = site.integer("axis", 0) % len(shape)
    kept = (1,) if site.integer("keepdims", 1) else ()
    return [(*shape[:axis], *kept, *shape[axis + 1 :])]


INDEXING: dict[str, Rule] = {
    "ArgMax": _position,
    "ArgMin": _position,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_tuples,
    "TopK": _best,
}
"""By operator."""
