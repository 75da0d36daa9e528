"""Names that come out of a protobuf message."""

from tightship.errors import FormatError


def utf8(text: str | bytes, what: str) -> str:
    """A name as it is; protobuf hands out bytes where a name is not UTF-8.

    Raises:
        FormatError: It is not UTF-8.
    """
    if isinstance(text, bytes):
        raise FormatError(f"The {what} {text[:64]!r} is not UTF-8.")
    return text
