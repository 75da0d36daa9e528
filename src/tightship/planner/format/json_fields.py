"""Reads JSON strictly: every field is present, of its type, and known."""

import json
from pathlib import Path
from typing import NoReturn

from tightship.errors import FormatError

INT64_MAX = 2**63 - 1


class Fields:
    """One JSON object, with its position for messages."""

    __slots__ = ("raw", "where")

    def __init__(self, where: str, raw: object) -> None:
        if not isinstance(raw, dict):
            raise FormatError(f"{where} is not a JSON object.")
        self.where = where
        self.raw: dict[str, object] = raw

    def check_keys(self, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        """Raise `FormatError` if a key is missing, or is neither required nor optional."""
        for key in keys:
            if key not in self.raw:
                raise FormatError(f"{self.where} has no `{key}`.")
        for key in self.raw:
            if key not in keys and key not in optional:
                raise FormatError(f"{self.where} has an unknown field `{key}`.")

    def integer(self, key: str) -> int:
        """Read a non-negative int64.

        Raises:
            FormatError: The field is missing, of another type or out of range.
        """
        value = self.raw.get(key)
        if type(value) is not int or not 0 <= value <= INT64_MAX:
            self.refuse(key, f"an integer in [0, {INT64_MAX}]")
        return value

    def text(self, key: str) -> str:
        """Read a string.

        Raises:
            FormatError: The field is missing or of another type.
        """
        value = self.raw.get(key)
        if not isinstance(value, str):
            self.refuse(key, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """Read a string or null."""
        return None if self.raw[key] is None else self.text(key)

    def items(self, key: str) -> list[object]:
        """Read an array."""
        value = self.raw.get(key)
        if not isinstance(value, list):
            self.refuse(key, "an array")
        return value

    def objects(self, key: str, *, optional: bool = False) -> "list[Fields]":
        """Read an array of objects; an optional array that is absent is empty."""
        if optional and key not in self.raw:
            return []
        prefix = f"{self.where}, `{key}["
        return [Fields(f"{prefix}{index}]`", raw) for index, raw in enumerate(self.items(key))]

    def integers(self, key: str) -> list[int]:
        """Read an array of non-negative int64."""
        values = self.items(key)
        if not all(type(value) is int and 0 <= value <= INT64_MAX for value in values):
            self.refuse(key, f"an array of integers in [0, {INT64_MAX}]")
        return values  # type: ignore[return-value]

    def pairs(self, key: str, *, optional: bool = False) -> list[list[int]]:
        """Read an array of pairs of non-negative int64; an absent optional array is empty."""
        if optional and key not in self.raw:
            return []
        values = self.items(key)
        for pair in values:
            if not isinstance(pair, list) or len(pair) != 2:
                self.refuse(key, "an array of pairs")
            if not all(type(value) is int and 0 <= value <= INT64_MAX for value in pair):
                self.refuse(key, f"an array of pairs of integers in [0, {INT64_MAX}]")
        return values  # type: ignore[return-value]

    def refuse(self, key: str, needed: str) -> NoReturn:
        """Raise `FormatError` that names the field, its value and the value that it needs."""
        found = json.dumps(self.raw.get(key))[:40]
        raise FormatError(f"{self.where}: `{key}` is {found}; it must be {needed}.")


def load_json(path: Path, content: bytes) -> object:
    """Parse the content of a file.

    Raises:
        FormatError: The content is not JSON in UTF-8, or a field occurs twice.
    """
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise FormatError(f"`{path}` is not a plan file in JSON: {error}.") from error


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        repeated = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise FormatError(f"field `{repeated}` occurs twice")
    return unique


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"`{name}` is not JSON")
