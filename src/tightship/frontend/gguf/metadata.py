"""Metadata of a GGUF file, by key and type."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from tightship.errors import FormatError
from tightship.frontend.gguf.fields import Field, Numbers, Text, Texts


class Metadata(NamedTuple):
    """Values of a file by key; `prefix` and a dot stand before the keys of an architecture."""

    path: str
    fields: Mapping[str, Field]
    prefix: str = ""

    def named(self, key: str) -> str:
        """Return the whole key."""
        return f"{self.prefix}.{key}" if self.prefix else key

    def has(self, key: str) -> bool:
        """Whether the file has a key."""
        return self.named(key) in self.fields

    def integer(self, key: str, default: int | None = None, *, most: int = 1 << 31) -> int:
        """Return a count of 1 to `most`, or the default.

        Raises:
            FormatError: It is none, or is absent and has no default.
        """
        found = self._find(key, default)
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= most:
            raise self.refusal(key, found, f"an integer of 1 to {most}")
        return found

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number above 0, or the default.

        Raises:
            FormatError: It is none, or is absent and has no default.
        """
        found = self._find(key, default)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not isfinite(found) or found <= 0:
            raise self.refusal(key, found, "a number above 0")
        return float(found)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text, or the default.

        Raises:
            FormatError: It is none, or is absent and has no default.
        """
        found = self._find(key, default)
        if isinstance(found, Text):
            return found.read()
        if isinstance(found, str):
            return found
        raise self.refusal(key, found, "a text")

    def list_of_integers(self, key: str) -> tuple[int, ...] | None:
        """Return an array of integers or truth values; None if it is absent or not an array.

        Raises:
            FormatError: Its elements are something else.
        """
        found = self.fields.get(self.named(key))
        if not isinstance(found, Numbers | Texts):
            return None
        elements = None if isinstance(found, Texts) else found.elements
        if elements is None or elements.dtype.kind not in "iub":
            raise self.refusal(key, found, "an array of integers")
        return tuple(map(int, elements.tolist()))

    def texts(self, key: str) -> list[str] | None:
        """Return an array of texts; None if it is absent.

        Raises:
            FormatError: It is something else, or a text is not UTF-8.
        """
        found = self.fields.get(self.named(key))
        if found is not None and not isinstance(found, Texts):
            raise self.refusal(key, found, "an array of texts")
        return None if found is None else found.read()

    def numbers(self, key: str, count: int) -> list[float] | None:
        """Return an array of so many numbers; None if it is absent.

        Raises:
            FormatError: The value is not such an array.
        """
        found = self.fields.get(self.named(key))
        if found is None:
            return None
        if not isinstance(found, Numbers) or found.elements is None or found.length != count:
            raise self.refusal(key, found, f"an array of {count} numbers")
        numbers: list[float] = found.elements.tolist()
        return numbers

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a truth value, or the default.

        Raises:
            FormatError: The value is not a truth value.
        """
        found = self._find(key, default)
        if not isinstance(found, bool):
            raise self.refusal(key, found, "a truth value")
        return found

    def refusal(self, key: str, found: object, wanted: str) -> FormatError:
        """Return the error for a key whose value is not what is wanted."""
        shown = "absent" if found is None else repr(found)
        if isinstance(found, Text):
            shown = f"the text {found.read()[:40]!r}"
        elif isinstance(found, Numbers | Texts):
            shown = f"an array of {found.length} elements"
        return FormatError(
            f"`{self.path}`: the key `{self.named(key)}` is {shown}; it must be {wanted}. Convert "
            "the model again."
        )

    def _find(self, key: str, default: Any) -> Any:  # noqa: ANN401  a field, or a default's type
        return self.fields.get(self.named(key), default)
