"""Tells whether an ONNX file fixes the shapes of its inputs, without onnx."""

from collections.abc import Iterator

from tightship.errors import FormatError
from tightship.frontend.onnx.wire import LENGTH_DELIMITED, VARINT, Field, fields, read_varint
from tightship.graph import MappedFile

GRAPH, INPUT, TYPE, TENSOR, SHAPE, DIMENSION, LENGTH = 7, 11, 2, 1, 2, 1, 1
"""Numbers of the fields that lead from a model to the length of an axis."""
LENGTH_MAX = (1 << 63) - 1


def fixes_all_shapes(path: str) -> bool:
    """Whether a file says a length for each axis of each input.

    Constants that are listed among the inputs count as such. A file that is not understood, or has
    an input that is not a tensor, fixes nothing.

    Raises:
        OSError: The file cannot be read.
    """
    file = MappedFile(path)
    try:
        data = file.bytes_at(0, file.size_bytes)
        return all(
            _fixes(data, each)
            for graph in _within(data, Field(0, LENGTH_DELIMITED, 0, 0, len(data)), GRAPH)
            for each in _within(data, graph, INPUT)
        )
    except FormatError:
        return False
    finally:
        file.release()


def _fixes(data: memoryview, value: Field) -> bool:
    shapes = [
        shape
        for kind in _within(data, value, TYPE)
        for tensor in _within(data, kind, TENSOR)
        for shape in _within(data, tensor, SHAPE)
    ]
    return len(shapes) == 1 and all(
        _is_length(data, each) for each in _within(data, shapes[0], DIMENSION)
    )


def _is_length(data: memoryview, dimension: Field) -> bool:
    found = list(fields(data, dimension.begin, dimension.stop))
    if [(each.number, each.wire_type) for each in found] != [(LENGTH, VARINT)]:
        return False
    return read_varint(data, found[0].begin, found[0].stop)[0] <= LENGTH_MAX


def _within(data: memoryview, message: Field, number: int) -> Iterator[Field]:
    """Yield the messages within a message that have a number."""
    for each in fields(data, message.begin, message.stop):
        if each.number == number:
            if each.wire_type != LENGTH_DELIMITED:
                raise FormatError(f"Field {number} at byte {each.start} is not a message.")
            yield each
