"""Forms that write and read values as little-endian bytes: numbers, texts, sequences, records.

A value has one encoding; other bytes are refused. A number that does not fit its field is refused
with INVALID_ARGUMENT, like numbers that break a rule.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from tightship.driver.types.status import invalid
from tightship.errors import DriverError, FormatError

T = TypeVar("T")


class Reader:
    """Bytes and a reading position."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, count: int) -> bytes:
        """Read the next `count` bytes.

        Raises:
            FormatError: Fewer bytes are left.
        """
        stop = self.position + count
        if stop > len(self.data):
            raise FormatError(
                f"The message ends at byte {len(self.data)}, inside a value that ends at {stop}."
            )
        taken = self.data[self.position : stop]
        self.position = stop
        return taken

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Read the next numbers.

        Raises:
            FormatError: Too few bytes are left.
        """
        try:
            numbers = layout.unpack_from(self.data, self.position)
        except struct.error as error:
            raise FormatError(
                f"The message ends at byte {len(self.data)}; {layout.size} bytes should follow at "
                f"{self.position}."
            ) from error
        self.position += layout.size
        return numbers


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """Functions that write and read a value.

    Attributes:
        number: Letter of `struct` for a number without further restrictions; a record reads
            adjacent ones together.
    """

    write: Callable[[T, bytearray], None]
    read: Callable[[Reader], T]
    number: str = ""


class NumberError(Exception):
    """Number that does not fit its field; the message lacks the name of the field."""

    def __init__(self, number: object, letter: str) -> None:
        bits = 8 * struct.calcsize("<" + letter)
        least, most = (
            (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if letter.islower() else (0, 2**bits - 1)
        )
        wanted = "a number" if letter == "d" else f"a whole number from {least} to {most}"
        super().__init__(f"is {number!r:.100}; it must be {wanted}")


def _pack(letters: str, layout: struct.Struct, out: bytearray, numbers: Sequence[float]) -> None:
    """Write numbers.

    Raises:
        NumberError: A number does not fit; the first such one is named.
    """
    try:
        out += layout.pack(*numbers)
    except (struct.error, OverflowError):
        for letter, number in zip(letters, numbers, strict=True):
            if not _fits(letter, number):
                raise NumberError(number, letter) from None
        raise


def _fits(letter: str, number: object) -> bool:
    try:
        struct.pack("<" + letter, number)
    except (struct.error, OverflowError):
        return False
    return True


def _number(letter: str) -> Form[Any]:
    layout = struct.Struct("<" + letter)
    return Form(
        lambda value, out: _pack(letter, layout, out, (value,)),
        lambda reader: reader.unpack(layout)[0],
        letter,
    )


U8: Form[int] = _number("B")
I32: Form[int] = _number("i")
U32: Form[int] = _number("I")
I64: Form[int] = _number("q")
F64: Form[float] = _number("d")

_COUNT = struct.Struct("<I")


def flag() -> Form[bool]:
    """Return the form of a byte that is 0 or 1."""

    def read(reader: Reader) -> bool:
        byte = reader.take(1)[0]
        if byte > 1:
            raise FormatError(f"A flag is {byte}; it must be 0 or 1.")
        return byte == 1

    return Form(lambda value, out: out.append(bool(value)), read)


def _checked_count(count: int, count_max: int) -> int:
    if count > count_max:
        raise FormatError(f"A sequence has {count} entries; at most {count_max} can be sent.")
    return count


def octets(count_max: int) -> Form[bytes]:
    """Return the form of at most `count_max` bytes."""

    def write(value: bytes, out: bytearray) -> None:
        out += _COUNT.pack(_checked_count(len(value), count_max))
        out += value

    return Form(
        write, lambda reader: reader.take(_checked_count(reader.unpack(_COUNT)[0], count_max))
    )


def text(count_max: int) -> Form[str]:
    """Return the form of a text of at most `count_max` bytes in UTF-8."""
    inner = octets(count_max)

    def write(value: str, out: bytearray) -> None:
        try:
            inner.write(value.encode(), out)
        except UnicodeEncodeError as error:
            raise FormatError(
                "A text has an unpaired surrogate; UTF-8 cannot encode it."
            ) from error

    def read(reader: Reader) -> str:
        try:
            return inner.read(reader).decode()
        except UnicodeDecodeError as error:
            raise FormatError("A text is not UTF-8.") from error

    return Form(write, read)


def integers(letter: str, count_max: int) -> Form[tuple[int, ...]]:
    """Return the form of at most `count_max` integers of one width."""
    width = struct.calcsize("<" + letter)

    def write(value: tuple[int, ...], out: bytearray) -> None:
        out += _COUNT.pack(_checked_count(len(value), count_max))
        if value:
            _pack(letter * len(value), struct.Struct(f"<{len(value)}{letter}"), out, value)

    def read(reader: Reader) -> tuple[int, ...]:
        count = _checked_count(reader.unpack(_COUNT)[0], count_max)
        if not count:
            return ()
        return struct.unpack(f"<{count}{letter}", reader.take(count * width))

    return Form(write, read)


def row(entry: Form[T], count_max: int) -> Form[tuple[T, ...]]:
    """Return the form of at most `count_max` values of one form."""

    def write(value: tuple[T, ...], out: bytearray) -> None:
        out += _COUNT.pack(_checked_count(len(value), count_max))
        for one in value:
            entry.write(one, out)

    def read(reader: Reader) -> tuple[T, ...]:
        count = _checked_count(reader.unpack(_COUNT)[0], count_max)
        return tuple([entry.read(reader) for _ in range(count)])

    return Form(write, read)


def remembered(inner: Form[T], *, size_bytes_max: int, entries: int) -> Form[T]:
    """Return the form of a value behind its size; recent ones of few bytes are cached.

    For immutable values only, because several readers may get the same object.
    """

    def parse(data: bytes) -> T:
        reader = Reader(data)
        value = inner.read(reader)
        if reader.position != len(data):
            raise FormatError(f"{len(data) - reader.position} bytes are left in a nested value.")
        return value

    recall = lru_cache(entries)(parse)

    def write(value: T, out: bytearray) -> None:
        nested = bytearray()
        inner.write(value, nested)
        out += _COUNT.pack(len(nested))
        out += nested

    def read(reader: Reader) -> T:
        data = reader.take(reader.unpack(_COUNT)[0])
        return recall(data) if len(data) <= size_bytes_max else parse(data)

    return Form(write, read)


def optional(inner: Form[T]) -> Form[T | None]:
    """Return the form of a value that may be None."""
    presence = flag()

    def write(value: T | None, out: bytearray) -> None:
        out.append(value is not None)
        if value is not None:
            inner.write(value, out)

    return Form(write, lambda reader: inner.read(reader) if presence.read(reader) else None)


def one_of(forms: Mapping[int, tuple[type, Form[Any]]]) -> Form[Any]:
    """Return the form of a value of one of several classes, behind a byte for its class."""
    tags = {kind: (tag, form) for tag, (kind, form) in forms.items()}

    def write(value: object, out: bytearray) -> None:
        tag, form = tags[type(value)]
        out.append(tag)
        form.write(value, out)

    def read(reader: Reader) -> object:
        tag = reader.take(1)[0]
        if tag not in forms:
            raise FormatError(f"A value is of kind {tag}; {sorted(forms)} are known.")
        return forms[tag][1].read(reader)

    return Form(write, read)


FORMS: dict[object, Form[Any]] = {int: I64, float: F64, bool: flag()}
"""Form of a field by its type, unless its record says otherwise; a record adds itself."""


def record(kind: type[T], /, **others: Form[Any]) -> Form[T]:
    """Return the form of a dataclass, field by field in order.

    Args:
        kind: Dataclass, whose fields have the forms of `FORMS`.
        others: Forms of fields that `FORMS` does not have, or that have another one.
    """
    types = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]
    assert others.keys() <= types.keys(), kind
    forms = {name: others.get(name) or FORMS[types[name]] for name in types}
    writers: list[Callable[[T, bytearray], None]] = []
    readers: list[Callable[[Reader], tuple[Any, ...]]] = []
    numbers: dict[str, str] = {}
    for name, form in forms.items():
        if form.number:
            numbers[name] = form.number
            continue
        _add_numbers(numbers, writers, readers)
        numbers = {}
        writers.append(_writer_of(form, attrgetter(name)))
        readers.append(_reader_of(form))
    _add_numbers(numbers, writers, readers)

    def write(value: T, out: bytearray) -> None:
        try:
            for writer in writers:
                writer(value, out)
        except NumberError as error:
            raise _unsendable(value, forms, error) from None

    def read(reader: Reader) -> T:
        values: list[Any] = []
        for part in readers:
            values += part(reader)
        return kind(*values)

    FORMS[kind] = Form(write, read)
    return FORMS[kind]


def _unsendable(value: object, forms: Mapping[str, Form[Any]], error: NumberError) -> DriverError:
    """Return the error for a record, naming its first field that cannot be written."""
    for name, form in forms.items():
        try:
            form.write(getattr(value, name), bytearray())
        except NumberError:
            return invalid(f"`{type(value).__name__}.{name}` {error}.")
    raise AssertionError(value) from error


def _add_numbers(
    numbers: Mapping[str, str],
    writers: list[Callable[[T, bytearray], None]],
    readers: list[Callable[[Reader], tuple[Any, ...]]],
) -> None:
    if numbers:
        letters = "".join(numbers.values())
        layout = struct.Struct("<" + letters)
        getters = [attrgetter(name) for name in numbers]
        writers.append(
            lambda value, out: _pack(letters, layout, out, [get(value) for get in getters])
        )
        readers.append(lambda reader: reader.unpack(layout))


def _writer_of(
    form: Form[Any], getter: Callable[[Any], object]
) -> Callable[[Any, bytearray], None]:
    return lambda value, out: form.write(getter(value), out)


def _reader_of(form: Form[Any]) -> Callable[[Reader], tuple[Any, ...]]:
    return lambda reader: (form.read(reader),)
