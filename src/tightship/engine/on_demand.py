"""Tables of many operators, split over modules that are imported on first lookup.

A process runs few of all operators, and a module keeps some 30 KB resident.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class OnDemand(Mapping[K, V]):
    """Mapping joined from mappings in modules; looking a key up imports its module."""

    def __init__(self, package: str, tables: Mapping[str, Iterable[K]]) -> None:
        """List the keys of each mapping, by its `module.NAME` in the package."""
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
        """Return the value of a key, or the default, without an import if the key is absent."""
        return self[key] if key in self._places else default

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[K]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def tables(self) -> Iterator[tuple[Mapping[K, V], Iterable[K]]]:
        """Import and yield each joined mapping, with the keys that it is listed with."""
        for place, keys in self._tables.items():
            yield self._table(place), keys

    def _table(self, place: str) -> Mapping[K, V]:
        module, name = place.split(".")
        table: Mapping[K, V] = getattr(import_module(f"{self._package}.{module}"), name)
        return table


def names(operators: str) -> tuple[str, ...]:
    """Split names at spaces."""
    return tuple(operators.split())


def of_onnx(operators: str) -> tuple[tuple[str, str], ...]:
    """Make keys of domain and operator, in ONNX's own domain, from names between spaces."""
    return tuple(("", operator) for operator in names(operators))
