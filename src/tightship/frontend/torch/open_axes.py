"""Lengths of example inputs that stay open, by the names that a caller gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from tightship.errors import InputError
from tightship.frontend.torch.examples import Examples, Tree
from tightship.frontend.torch.unallocated import empty

Shapes = Mapping[str, Sequence[int | str] | int]
"""Shapes by input, in which a text is the name of an open length, and lengths by name."""


@dataclass(slots=True)
class OpenAxes:
    """Shapes that a caller gives, applied to example inputs.

    Attributes:
        shapes: What the caller gives.
        lengths: Open lengths by name, as the module is planned for.
        bound: Shapes of the inputs that have open lengths.
    """

    shapes: Shapes
    lengths: dict[str, int] = field(default_factory=dict)
    bound: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def applied(self, examples: Examples) -> Examples:
        """Return examples of the shapes to export with.

        torch fixes lengths of 0 and 1 for good, so that open ones are exported as 2.

        Raises:
            InputError: A name is unknown, a rank differs, or two lengths contradict each other.
        """
        leaves = dict(examples.leaves())
        self._check_names(leaves)
        return examples.mapped(self._resized)

    def dynamic_shapes(self, examples: Examples) -> dict[str, Tree] | None:
        """Return torch's description of the open lengths; None if there are none."""
        if not self.bound:
            return None
        dims = {name: Dim(name, min=0) for name in self.lengths}

        def spec(name: str, _: torch.Tensor) -> "_Axes":
            wanted = self.shapes.get(name, ()) if name in self.bound else ()
            assert not isinstance(wanted, int)
            return _Axes({a: dims[n] for a, n in enumerate(wanted) if isinstance(n, str)})

        marked = examples.mapped(spec).arguments
        return {name: pytree.tree_map(_axes, value) for name, value in marked.items()}

    def _resized(self, name: str, leaf: torch.Tensor) -> torch.Tensor:
        wanted = self.shapes.get(name)
        if wanted is None:
            return leaf
        if isinstance(wanted, int) or len(wanted) != leaf.ndim:
            raise InputError(
                f"Input `{name}` has the shape {list(leaf.shape)} in `example_inputs`, but "
                f"`shapes` gives it {wanted if isinstance(wanted, int) else list(wanted)}; give "
                f"{leaf.ndim} lengths."
            )
        pairs = list(zip(wanted, leaf.shape, strict=True))
        lengths = tuple(
            self._length(name, each, length) if isinstance(each, str) else int(each)
            for each, length in pairs
        )
        if any(isinstance(each, str) for each, _ in pairs):
            self.bound[name] = lengths
        exported = tuple(
            max(length, 2) if isinstance(each, str) else length
            for (each, _), length in zip(pairs, lengths, strict=True)
        )
        return leaf if exported == tuple(leaf.shape) else empty(leaf, exported)

    def _length(self, name: str, dimension: str, example: int) -> int:
        given = self.shapes.get(dimension)
        length = int(given) if isinstance(given, int) else example
        if not dimension.isidentifier():
            raise InputError(
                f"The open length `{dimension}` of input `{name}` is not a name; give one such as "
                "`batch`."
            )
        if self.lengths.setdefault(dimension, length) != length:
            raise InputError(
                f"Length `{dimension}` is {self.lengths[dimension]} in one example input and "
                f"{length} in `{name}`; give both the same."
            )
        return length

    def _check_names(self, leaves: Mapping[str, torch.Tensor]) -> None:
        texts = {
            each
            for shape in self.shapes.values()
            if not isinstance(shape, int)
            for each in shape
            if isinstance(each, str)
        }
        for name in self.shapes:
            if name not in leaves and name not in texts:
                names = ", ".join(f"`{other}`" for other in leaves) or "none"
                raise InputError(
                    f"The module has no input `{name}`; its inputs are: {names}. A length stays "
                    f"open under a name in the shape of an input, as in "
                    f"`shapes={{'{next(iter(leaves), 'x')}': ('batch', ...)}}`."
                )


class _Axes:
    """Open axes of one input; a class of its own, because torch's trees would open a mapping."""

    def __init__(self, axes: Mapping[int, Dim]) -> None:
        self.axes = dict(axes)


def _axes(leaf: object) -> object:
    return leaf.axes if isinstance(leaf, _Axes) else None
