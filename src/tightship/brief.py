"""Short texts and HTML tables of results, for terminals and notebooks."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import fields
from typing import Any, SupportsIndex, TypeVar, overload

Row = TypeVar("Row")
Class = TypeVar("Class", bound=type)

_TEXT_MAX = 60
_WHOLE_MAX = 3
"""Items of a collection that a text shows whole."""
_NAMES_SHOWN = 3
_ROWS_SHOWN = 100


class Rows(tuple[Row, ...]):
    """A tuple of results whose text stays short however many there are; HTML is a table of them."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, index: "slice[Any, Any, Any]") -> "Rows[Row]": ...
    def __getitem__(self, index: "SupportsIndex | slice[Any, Any, Any]") -> "Row | Rows[Row]":
        """Return a row, or some of the rows, which show as a table too."""
        if isinstance(index, slice):
            return Rows(super().__getitem__(index))
        return super().__getitem__(index)

    def __repr__(self) -> str:
        """Return the number of rows, and the names of the first."""
        if len(self) <= _WHOLE_MAX:
            return super().__repr__()
        names = [str(getattr(row, "name", "")) for row in self[:_NAMES_SHOWN]]
        shown = f": {_cut(', '.join(names))}, …" if all(names) else ""
        return f"<{len(self)} of {type(self[0]).__name__}{shown}>"

    def _repr_html_(self) -> str:
        if not self:
            return "<p>none</p>"
        names = _names(self[0])
        head = "".join(f"<th>{escaped(name)}</th>" for name in names)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_html(getattr(row, name))}</td>' for name in names)}</tr>"
            for row in self[:_ROWS_SHOWN]
        )
        rest = len(self) - _ROWS_SHOWN
        more = f"<p>… and {rest} more</p>" if rest > 0 else ""
        return f"<table><tr>{head}</tr>{rows}</table>{more}"


def brief(cls: Class) -> Class:
    """Give a dataclass a text of one short line, and an HTML table of its fields.

    Collections of more than three items are shown by their number of items.
    """
    cls.__repr__ = _text  # type: ignore[assignment]
    if "_repr_html_" not in vars(cls):
        cls._repr_html_ = _table  # type: ignore[attr-defined]
    return cls


def _text(self: object) -> str:
    shown = ", ".join(f"{name}={_value(getattr(self, name))}" for name in _names(self))
    return f"{type(self).__qualname__}({shown})"


def _table(self: object) -> str:
    rows = "".join(
        f"<tr><th>{escaped(name)}</th><td>{_html(getattr(self, name))}</td></tr>"
        for name in _names(self)
    )
    return f"<table>{rows}</table>"


def _names(row: object) -> Sequence[str]:
    """Return the public fields of a dataclass; none of another object."""
    if not hasattr(row, "__dataclass_fields__"):
        return ()
    shown = (each.name for each in fields(row) if each.repr)  # type: ignore[arg-type]
    return [name for name in shown if not name.startswith("_")]


def _value(value: object) -> str:
    """Return a short text of a field."""
    if isinstance(value, Rows | str | bytes):
        return repr(value) if isinstance(value, Rows) else _cut(repr(value))
    if hasattr(value, "__array_interface__"):  # an array of NumPy, which is not imported here
        return f"<{getattr(value, 'dtype', '')} {list(getattr(value, 'shape', ()))}>"
    if isinstance(value, Sized) and len(value) > _WHOLE_MAX:
        return f"<{len(value)} items>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_items(value)) + ")"
    return _cut(repr(value))


def _items(values: Sequence[object]) -> Iterator[str]:
    return map(_value, values)


def _html(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return escaped(value if isinstance(value, str) else _value(value))


def escaped(text: str) -> str:
    """Return a text as HTML shows it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
