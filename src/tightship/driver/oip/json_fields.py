"""JSON objects from clients, and their fields by type."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from tightship.driver.oip.refusal import OipError

T = TypeVar("T")
Object = Mapping[str, Any]


def parse(text: bytes | bytearray | memoryview) -> dict[str, Any]:
    """Parse a JSON object; an empty text is an empty object.

    Raises:
        OipError: It is not an object.
    """
    try:
        found = json.loads(bytes(text) or b"{}")
    except (ValueError, RecursionError) as error:
        raise OipError(f"failed to parse the request JSON buffer: {error}") from None
    if not isinstance(found, dict):
        raise OipError("failed to parse the request JSON buffer: it is not an object")
    return found


def field(of: Object, key: str, kind: type[T]) -> T:
    """Return a required field.

    Raises:
        OipError: It is missing, or of another type.
    """
    found = optional(of, key, kind)
    if found is None:
        raise OipError(f"Unable to parse '{key}': attempt to access non-existing object member")
    return found


def optional(of: Object, key: str, kind: type[T]) -> T | None:
    """Return a field, or None if it is missing.

    Raises:
        OipError: It is of another type.
    """
    found = of.get(key)
    if found is None or (type(found) is kind):
        return found
    raise OipError(f"Unable to parse '{key}': attempt to access JSON non-{kind.__name__} as one")


def objects(of: Object, key: str) -> list[dict[str, Any]]:
    """Return a field that is a list of objects; an empty list if it is missing.

    Raises:
        OipError: It is something else.
    """
    found: list[Any] = optional(of, key, list) or []
    if not all(isinstance(each, dict) for each in found):
        raise OipError(f"Unable to parse '{key}': it must be a list of objects")
    return found
