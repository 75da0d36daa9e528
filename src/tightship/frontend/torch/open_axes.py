"""Lengths of example inputs that stay open, by the names that a caller gives them."""

from collections.abc import Mapping

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from tightship.frontend.named_lengths import NamedLengths, Shapes
from tightship.frontend.torch.examples import Examples, Tree
from tightship.frontend.torch.unallocated import empty


class OpenAxes:
    """Shapes that a caller gives, applied to example inputs.

    Attributes:
        named: The shapes, and the open lengths as the module is planned for.
    """

    def __init__(self, shapes: Shapes) -> None:
        self.named = NamedLengths(shapes)

    def applied(self, examples: Examples) -> Examples:
        """Return examples of the shapes to export with.

        torch fixes lengths of 0 and 1 for good, so that open ones are exported as 2.

        Raises:
            InputError: A name is unknown, a rank differs, or two lengths contradict each other.
        """
        self.named.check_names(dict(examples.leaves()))
        return examples.mapped(self._resized)

    def dynamic_shapes(self, examples: Examples) -> dict[str, Tree] | None:
        """Return torch's description of the open lengths; None if there are none."""
        named = self.named
        if not named.bound:
            return None
        dims = {name: Dim(name, min=0) for name in named.lengths}

        def spec(name: str, _: torch.Tensor) -> "_Axes":
            wanted = named.declared(name) if name in named.bound else ()
            return _Axes({a: dims[n] for a, n in enumerate(wanted) if isinstance(n, str)})

        marked = examples.mapped(spec).arguments
        return {name: pytree.tree_map(_axes, value) for name, value in marked.items()}

    def _resized(self, name: str, leaf: torch.Tensor) -> torch.Tensor:
        exported = self.named.applied(name, tuple(leaf.shape))
        if name in self.named.bound:
            wanted = self.named.declared(name)
            exported = tuple(
                max(length, 2) if isinstance(each, str) else length
                for each, length in zip(wanted, exported, strict=True)
            )
        return leaf if exported == tuple(leaf.shape) else empty(leaf, exported)


class _Axes:
    """Open axes of one input; a class of its own, because torch's trees would open a mapping."""

    def __init__(self, axes: Mapping[int, Dim]) -> None:
        self.axes = dict(axes)


def _axes(leaf: object) -> object:
    return leaf.axes if isinstance(leaf, _Axes) else None
