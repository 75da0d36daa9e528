"""Lengths that a caller gives for the example inputs of a module, and names for open ones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tightship.errors import InputError

Shapes = Mapping[str, Sequence[int | str] | int]
"""Shapes by input, in which a text is the name of an open length, and lengths by name."""


@dataclass(slots=True)
class NamedLengths:
    """Shapes that a caller gives, applied to those of example inputs.

    Attributes:
        shapes: What the caller gives.
        lengths: Open lengths by name, as the module is planned for.
        bound: Shapes of the inputs that have open lengths.
    """

    shapes: Shapes
    lengths: dict[str, int] = field(default_factory=dict)
    bound: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def declared(self, name: str) -> tuple[int | str, ...]:
        """Return the shape of an input among `bound` with the names of its open lengths."""
        wanted = self.shapes[name]
        assert not isinstance(wanted, int)
        return tuple(wanted)

    def applied(self, name: str, example: Sequence[int]) -> tuple[int, ...]:
        """Return the lengths of an input whose example has the shape `example`.

        Raises:
            InputError: The rank differs, or two lengths contradict each other.
        """
        wanted = self.shapes.get(name)
        if wanted is None:
            return tuple(example)
        if isinstance(wanted, int) or len(wanted) != len(example):
            raise InputError(
                f"Input `{name}` has the shape {list(example)} in `example_inputs`, but "
                f"`shapes` gives it {wanted if isinstance(wanted, int) else list(wanted)}; give "
                f"{len(example)} lengths."
            )
        found = tuple(
            self._length(name, each, length) if isinstance(each, str) else int(each)
            for each, length in zip(wanted, example, strict=True)
        )
        if any(isinstance(each, str) for each in wanted):
            self.bound[name] = found
        return found

    def check_names(self, inputs: Collection[str]) -> None:
        """Check that each name that is given is an input's or an open length's.

        Raises:
            InputError: One is neither.
        """
        texts = {
            each
            for shape in self.shapes.values()
            if not isinstance(shape, int)
            for each in shape
            if isinstance(each, str)
        }
        for name in self.shapes:
            if name not in inputs and name not in texts:
                names = ", ".join(f"`{other}`" for other in inputs) or "none"
                raise InputError(
                    f"The module has no input `{name}`; its inputs are: {names}. A length stays "
                    f"open under a name in the shape of an input, as in "
                    f"`shapes={{'{next(iter(inputs), 'x')}': ('batch', ...)}}`."
                )

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
