"""What serves each of many operators, in modules that are imported when first asked for.

A process runs few of the operators there are; a module keeps some 30 KB resident.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class OnDemand(Mapping[K, V]):
    """A mapping joined of mappings in modules; looking a key up imports the module it is in."""

    def __init__(self, package: str, tables: Mapping[str, Iterable[K]]) -> None:
        """Keys by the `module.NAME`, in a package, of the mapping that has exactly them."""
        self._package = package
        self._tables = tables
        self._places = {key: place for place, keys in tables.items() for key in keys}
        self._found: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        if key not in self._found:
            self._found[key] = self._table(self._places[key])[key]
        return self._found[key]

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...
    def get(self, key: K, default: T | None = None, /) -> V | T | None:
        """The value of a key, or the default; most lookups of a selection find nothing."""
        return self[key] if key in self._places else default

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[K]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def tables(self) -> Iterator[tuple[Mapping[K, V], Iterable[K]]]:
        """Each mapping it is joined of, imported, and the keys it is listed with."""
        for place, keys in self._tables.items():
            yield self._table(place), keys

    def _table(self, place: str) -> Mapping[K, V]:
        module, name = place.split(".")
        table: Mapping[K, V] = getattr(import_module(f"{self._package}.{module}"), name)
        return table


def names(operators: str) -> tuple[str, ...]:
    """Keys for names that stand between spaces."""
    return tuple(operators.split())


def of_onnx(operators: str) -> tuple[tuple[str, str], ...]:
    """Keys by domain and operator, as `names`, in ONNX's own domain."""
    return tuple(("", operator) for operator in names(operators))
