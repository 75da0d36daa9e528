"""A request to run a model: where its inputs and outputs are, checked against the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.model import NOWHERE, DataLocation
from tightship.driver.types.operand_type import (
    ValueType,
    check_dimensions,
    element_bytes,
    size_bytes,
)
from tightship.driver.types.status import invalid


@dataclass(frozen=True, slots=True)
class RequestArgument:
    """An input or output of a request.

    Attributes:
        dimensions: What the model leaves open; none where the model's are meant.
    """

    location: DataLocation
    dimensions: Dimensions = ()
    has_no_value: bool = False


@dataclass(frozen=True, slots=True)
class RequestPool:
    """A registered pool, or the token of a buffer that the driver allocated."""

    identifier: int
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is to read and write."""

    inputs: tuple[RequestArgument, ...]
    outputs: tuple[RequestArgument, ...]
    pools: tuple[RequestPool, ...]


FileIdentity = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes `[start, stop)` of a file, whoever mapped it."""

    file: FileIdentity
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Extent:
    """What a pool of a request covers: `size_bytes` of a file from an offset.

    Attributes:
        is_image: Used whole: a location in it is all zero.
        content_bytes: Of the rows of an image, without what is between them; 0 if not known.
    """

    file: FileIdentity
    offset_bytes: int
    size_bytes: int
    is_image: bool = False
    content_bytes: int = 0

    @property
    def value_bytes(self) -> int:
        """Of the value that it holds if it is used whole."""
        return self.content_bytes if self.is_image else self.size_bytes

    def region(self, location: DataLocation) -> Region:
        """Bytes of the file that a valid location in the pool covers, padding included."""
        if self.is_image:
            return Region(self.file, self.offset_bytes, self.offset_bytes + self.size_bytes)
        start = self.offset_bytes + location.offset_bytes
        return Region(self.file, start, start + location.length_bytes + location.padding_bytes)


@dataclass(frozen=True, slots=True)
class Interface:
    """What a prepared model takes and gives, and what it reads where it is: by file."""

    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]
    constants: Mapping[FileIdentity, Sequence[Region]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BoundArgument:
    """An argument that was checked.

    Attributes:
        location: None for an argument without a value.
        dimensions: Those of model and request together; an output's may be unknown in part.
    """

    location: DataLocation | None
    dimensions: Dimensions


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """A request that fits its model."""

    inputs: tuple[BoundArgument, ...]
    outputs: tuple[BoundArgument, ...]


def check_request(
    interface: Interface,
    request: Request,
    extents: Sequence[Extent | None],
    *,
    allow_unknown_outputs: bool,
) -> BoundRequest:
    """Check a request by itself and against its model.

    Args:
        interface: Of the model.
        request: Any.
        extents: Of each pool of the request; None for a token.
        allow_unknown_outputs: False for a fenced execution.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    for pool in request.pools:
        if pool.is_token and pool.identifier <= 0:
            raise invalid(f"A token is {pool.identifier}; tokens are positive.")
    _check_count("inputs", len(request.inputs), len(interface.inputs))
    _check_count("outputs", len(request.outputs), len(interface.outputs))
    inputs = tuple(
        _bind(argument, value_type, extents, f"Input {index}", may_be_unknown=False)
        for index, (argument, value_type) in enumerate(
            zip(request.inputs, interface.inputs, strict=True)
        )
    )
    outputs = tuple(
        _bind(argument, value_type, extents, f"Output {index}", allow_unknown_outputs)
        for index, (argument, value_type) in enumerate(
            zip(request.outputs, interface.outputs, strict=True)
        )
    )
    _check_overlap(inputs, outputs, extents, interface.constants)
    return BoundRequest(inputs, outputs)


def _check_count(what: str, had: int, needed: int) -> None:
    if had != needed:
        raise invalid(f"The request has {had} {what}; the model has {needed}.")


def _bind(
    argument: RequestArgument,
    value_type: ValueType,
    extents: Sequence[Extent | None],
    name: str,
    may_be_unknown: bool,  # noqa: FBT001
) -> BoundArgument:
    location = argument.location
    if argument.has_no_value:
        if location != NOWHERE or argument.dimensions:
            raise invalid(f"{name} has no value, yet a location or dimensions.")
        return BoundArgument(None, value_type.dimensions)
    if not 0 <= location.pool_index < len(extents):
        raise invalid(f"{name} is in pool {location.pool_index} of {len(extents)}.")
    extent = extents[location.pool_index]
    has_bytes = extent is not None and not extent.is_image
    if extent is None or extent.is_image:
        if location.offset_bytes or location.length_bytes or location.padding_bytes:
            raise invalid(f"{name} uses a whole buffer: its offset, length, padding must be 0.")
    else:
        _check_inside(location, extent.size_bytes, name)
    dimensions = _dimensions(argument, value_type, name)
    is_known = is_specified(dimensions, is_scalar=value_type.is_scalar)
    if not is_known and not may_be_unknown:
        raise invalid(f"{name} has dimensions {list(dimensions)}; all of them must be known.")
    if has_bytes:
        _check_bytes(location, value_type, dimensions if is_known else None, name)
    elif extent is not None and extent.content_bytes and is_known:
        needed = size_bytes(value_type.operand_type, dimensions)
        if needed != extent.content_bytes:
            raise invalid(f"{name} takes {needed} bytes; its image has {extent.content_bytes}.")
    return BoundArgument(location, dimensions)


def _check_inside(location: DataLocation, pool_bytes: int, name: str) -> None:
    offset, length, padding = (
        location.offset_bytes,
        location.length_bytes,
        location.padding_bytes,
    )
    if offset < 0 or length <= 0 or padding < 0:
        raise invalid(
            f"{name} has offset {offset}, length {length} and padding {padding}; the length must "
            f"be above 0, the others not below."
        )
    if offset + length + padding > pool_bytes:
        raise invalid(
            f"{name} ends at byte {offset + length + padding} of a pool of {pool_bytes} bytes."
        )


def _dimensions(argument: RequestArgument, value_type: ValueType, name: str) -> Dimensions:
    check_dimensions(argument.dimensions, name)
    if value_type.is_scalar and argument.dimensions:
        raise invalid(f"{name} is a scalar and is given dimensions.")
    combined = combine(value_type.dimensions, argument.dimensions)
    if combined is None:
        raise invalid(
            f"{name} is given dimensions {list(argument.dimensions)}; the model's are "
            f"{list(value_type.dimensions)}."
        )
    return combined


def _check_bytes(
    location: DataLocation, value_type: ValueType, dimensions: Dimensions | None, name: str
) -> None:
    if dimensions is not None:
        needed = size_bytes(value_type.operand_type, dimensions)
        if location.length_bytes != needed:
            raise invalid(
                f"{name} has a length of {location.length_bytes} bytes; its value takes {needed}."
            )
    element = element_bytes(value_type.operand_type)
    if location.offset_bytes % element:
        raise invalid(
            f"{name} is at offset {location.offset_bytes}; it must be a multiple of {element}."
        )


def _check_overlap(
    inputs: Sequence[BoundArgument],
    outputs: Sequence[BoundArgument],
    extents: Sequence[Extent | None],
    constants: Mapping[FileIdentity, Sequence[Region]],
) -> None:
    """No byte of an output is in another output, in an input or in a constant."""
    written = _regions(outputs, extents)
    read = _regions(inputs, extents)
    for file in {region.file for region in written} if constants else ():
        read += constants.get(file, ())
    rows = [(region.file, region.start, region.stop, True) for region in written]
    rows += [(region.file, region.start, region.stop, False) for region in read]
    file, written_stop, stop_max = (-1, -1), 0, 0
    for row_file, start, stop, is_written in sorted(rows):
        if row_file != file:
            file, written_stop, stop_max = row_file, 0, 0
        if start < (stop_max if is_written else written_stop):
            raise invalid(f"An output overlaps an argument or a constant at byte {start}.")
        stop_max = max(stop_max, stop)
        if is_written:
            written_stop = max(written_stop, stop)


def _regions(arguments: Sequence[BoundArgument], extents: Sequence[Extent | None]) -> list[Region]:
    regions = []
    for argument in arguments:
        if argument.location is not None:
            extent = extents[argument.location.pool_index]
            if extent is not None:
                regions.append(extent.region(argument.location))
    return regions
