"""Constants that are made of other tensors in the same way."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from types import FunctionType
from typing import TypeVar, cast

from tightship.graph.constant import Constant, Mapped

Part = TypeVar("Part")


class NotMovedError(Exception):
    """Raised for a constant of which it is not known what its function reads."""


@dataclass(slots=True)
class ConstantMover:
    """Makes constants of other tensors than those that they were made of.

    Attributes:
        place: Function that returns the tensor to take instead of one.
    """

    place: Callable[[Mapped], Mapped]
    _known: dict[int, tuple[object, object]] = field(default_factory=dict)
    """Results by the identity of what each was made like, which stays alive with it."""

    def moved(self, constant: Constant) -> Constant:
        """Return a constant of the other tensors; the same one if it is made of none.

        Raises:
            NotMovedError: Its function keeps what it reads to itself.
        """
        return self._moved(constant)

    def _moved(self, value: Part) -> Part:
        if id(value) not in self._known:
            self._known[id(value)] = value, self._made(value)
        return cast("Part", self._known[id(value)][1])

    def _made(self, value: object) -> object:
        if isinstance(value, Mapped):
            return self.place(value)
        if isinstance(value, tuple):
            parts = tuple(map(self._moved, value))
            return value if all(a is b for a, b in zip(value, parts, strict=True)) else parts
        if isinstance(value, partial):
            self._check(value.func)
            given, named = self._moved(value.args), tuple(value.keywords.items())
            others = self._moved(named)
            if given is value.args and others is named:
                return value
            return partial(value.func, *given, **dict(others))
        if is_dataclass(value) and not isinstance(value, type):
            changed = {}
            for name in (each.name for each in fields(value) if each.init):
                before = getattr(value, name)
                if (after := self._moved(before)) is not before:
                    changed[name] = after
            return replace(value, **changed) if changed else value
        if callable(value) and not isinstance(value, type):
            self._check(value)
        return value

    @staticmethod
    def _check(function: object) -> None:
        """Refuse a function that may hold constants of its own."""
        if not isinstance(function, FunctionType) or function.__closure__:
            raise NotMovedError(f"{function!r} may read more than it is given")
