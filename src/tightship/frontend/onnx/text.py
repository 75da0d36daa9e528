"""Names that come out of a protobuf message."""

from sys import intern

from tightship.errors import FormatError


def utf8(text: str | bytes, what: str) -> str:
    """A name as it is, interned; protobuf hands out bytes where a name is not UTF-8.

    A name comes several times in a file, and a file is read for several lengths.

    Raises:
        FormatError: It is not UTF-8.
    """
    if isinstance(text, bytes):
        raise FormatError(f"The {what} {text[:64]!r} is not UTF-8.")
    return intern(text)
