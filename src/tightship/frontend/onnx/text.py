"""Names in protobuf messages."""

from sys import intern

from tightship.errors import FormatError


def utf8(text: str | bytes, what: str) -> str:
    """Return a name, interned; protobuf returns bytes if a name is not UTF-8.

    Interning saves memory, because names recur in a file and files are read again for other
    lengths.

    Raises:
        FormatError: It is not UTF-8.
    """
    if isinstance(text, bytes):
        raise FormatError(f"The {what} {text[:64]!r} is not UTF-8.")
    return intern(text)
