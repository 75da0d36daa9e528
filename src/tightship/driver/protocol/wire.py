"""Forms of values in little-endian bytes: numbers, texts, rows, records, one of several.

A value has one encoding, and bytes that are not the encoding of a value are refused.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from tightship.errors import FormatError

T = TypeVar("T")


class Reader:
    """Bytes, and how far they were read."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, count: int) -> bytes:
        """The next bytes.

        Raises:
            FormatError: Fewer are left.
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
        """The next numbers.

        Raises:
            FormatError: Fewer bytes are left than they take.
        """
        try:
            numbers = layout.unpack_from(self.data, self.position)
        except struct.error as error:
            raise FormatError(
                f"The message ends at byte {len(self.data)}, {layout.size} bytes were to come at "
                f"{self.position}."
            ) from error
        self.position += layout.size
        return numbers


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How a value is written and read.

    Attributes:
        number: The letter of `struct` for a number that may have any value; neighbours in a
            record are read together.
    """

    write: Callable[[T, bytearray], None]
    read: Callable[[Reader], T]
    number: str = ""


def _pack(layout: struct.Struct, out: bytearray, *numbers: float) -> None:
    try:
        out += layout.pack(*numbers)
    except struct.error as error:
        raise FormatError(f"{numbers} cannot be sent: {error}.") from error


def _number(letter: str) -> Form[Any]:
    layout = struct.Struct("<" + letter)
    return Form(
        lambda value, out: _pack(layout, out, value),
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
    """A byte that is 0 or 1."""

    def read(reader: Reader) -> bool:
        byte = reader.take(1)[0]
        if byte > 1:
            raise FormatError(f"A flag is {byte}; it must be 0 or 1.")
        return byte == 1

    return Form(lambda value, out: out.append(value), read)


def _checked_count(count: int, count_max: int) -> int:
    if count > count_max:
        raise FormatError(f"A row has {count} entries; at most {count_max} can be sent.")
    return count


def octets(count_max: int) -> Form[bytes]:
    """A row of bytes."""

    def write(value: bytes, out: bytearray) -> None:
        _pack(_COUNT, out, _checked_count(len(value), count_max))
        out += value

    return Form(
        write, lambda reader: reader.take(_checked_count(reader.unpack(_COUNT)[0], count_max))
    )


def text(count_max: int) -> Form[str]:
    """A text, in UTF-8 of at most so many bytes."""
    inner = octets(count_max)

    def write(value: str, out: bytearray) -> None:
        try:
            inner.write(value.encode(), out)
        except UnicodeEncodeError as error:
            raise FormatError("A text has half a character.") from error

    def read(reader: Reader) -> str:
        try:
            return inner.read(reader).decode()
        except UnicodeDecodeError as error:
            raise FormatError("A text is not UTF-8.") from error

    return Form(write, read)


def integers(letter: str, count_max: int) -> Form[tuple[int, ...]]:
    """A row of integers of one width."""
    width = struct.calcsize("<" + letter)

    def write(value: tuple[int, ...], out: bytearray) -> None:
        _pack(_COUNT, out, _checked_count(len(value), count_max))
        if value:
            _pack(struct.Struct(f"<{len(value)}{letter}"), out, *value)

    def read(reader: Reader) -> tuple[int, ...]:
        count = _checked_count(reader.unpack(_COUNT)[0], count_max)
        if not count:
            return ()
        return struct.unpack(f"<{count}{letter}", reader.take(count * width))

    return Form(write, read)


def row(entry: Form[T], count_max: int) -> Form[tuple[T, ...]]:
    """Values of one form."""

    def write(value: tuple[T, ...], out: bytearray) -> None:
        _pack(_COUNT, out, _checked_count(len(value), count_max))
        for one in value:
            entry.write(one, out)

    def read(reader: Reader) -> tuple[T, ...]:
        count = _checked_count(reader.unpack(_COUNT)[0], count_max)
        return tuple([entry.read(reader) for _ in range(count)])

    return Form(write, read)


def remembered(inner: Form[T], *, size_bytes_max: int, entries: int) -> Form[T]:
    """A value behind the count of its bytes; the last small ones are not read anew.

    What is read twice may be one object, so this is for immutable values only.
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
        _pack(_COUNT, out, len(nested))
        out += nested

    def read(reader: Reader) -> T:
        data = reader.take(reader.unpack(_COUNT)[0])
        return recall(data) if len(data) <= size_bytes_max else parse(data)

    return Form(write, read)


def optional(inner: Form[T]) -> Form[T | None]:
    """A value or nothing."""
    presence = flag()

    def write(value: T | None, out: bytearray) -> None:
        out.append(value is not None)
        if value is not None:
            inner.write(value, out)

    return Form(write, lambda reader: inner.read(reader) if presence.read(reader) else None)


def one_of(forms: Mapping[int, tuple[type, Form[Any]]]) -> Form[Any]:
    """A value of one of several classes, behind a byte that says which."""
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


def record(kind: type[T], /, **forms: Form[Any]) -> Form[T]:
    """A dataclass, field by field."""
    assert [field.name for field in fields(kind)] == list(forms), kind  # type: ignore[arg-type]
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
        for writer in writers:
            writer(value, out)

    def read(reader: Reader) -> T:
        values: list[Any] = []
        for part in readers:
            values += part(reader)
        return kind(*values)

    return Form(write, read)


def _add_numbers(
    numbers: Mapping[str, str],
    writers: list[Callable[[T, bytearray], None]],
    readers: list[Callable[[Reader], tuple[Any, ...]]],
) -> None:
    if numbers:
        layout = struct.Struct("<" + "".join(numbers.values()))
        getters = [attrgetter(name) for name in numbers]
        writers.append(lambda value, out: _pack(layout, out, *[get(value) for get in getters]))
        readers.append(lambda reader: reader.unpack(layout))


def _writer_of(
    form: Form[Any], getter: Callable[[Any], object]
) -> Callable[[Any, bytearray], None]:
    return lambda value, out: form.write(getter(value), out)


def _reader_of(form: Form[Any]) -> Callable[[Reader], tuple[Any, ...]]:
    return lambda reader: (form.read(reader),)
