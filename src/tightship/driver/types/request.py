"""Requests to run a model: where inputs and outputs are, and checks against the model."""

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
    """Location of an input or output.

    Attributes:
        dimensions: Lengths of axes that the model leaves open; empty to take the model's.
    """

    location: DataLocation
    dimensions: Dimensions = ()
    has_no_value: bool = False


@dataclass(frozen=True, slots=True)
class RequestPool:
    """Registered pool, or buffer that the driver allocated, by its token."""

    identifier: int
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """Inputs and outputs of an execution, located in pools."""

    inputs: tuple[RequestArgument, ...]
    outputs: tuple[RequestArgument, ...]
    pools: tuple[RequestPool, ...]


FileIdentity = tuple[int, int]
"""Device and inode of a file."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes `[start, stop)` of a file, independent of where they are mapped."""

    file: FileIdentity
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Extent:
    """Range of a file that a pool covers: `size_bytes` from an offset.

    Attributes:
        is_image: Whether the pool is used whole, so that locations in it must be 0.
        content_bytes: Bytes of an image's rows without their padding; 0 if unknown.
    """

    file: FileIdentity
    offset_bytes: int
    size_bytes: int
    is_image: bool = False
    content_bytes: int = 0

    @property
    def value_bytes(self) -> int:
        """Bytes of the value that the pool holds if it is used whole."""
        return self.content_bytes if self.is_image else self.size_bytes

    def region(self, location: DataLocation) -> Region:
        """Return the bytes of the file that a valid location covers, padding included."""
        if self.is_image:
            return Region(self.file, self.offset_bytes, self.offset_bytes + self.size_bytes)
        start = self.offset_bytes + location.offset_bytes
        return Region(self.file, start, start + location.length_bytes + location.padding_bytes)


@dataclass(frozen=True, slots=True)
class Interface:
    """Types of a prepared model's inputs and outputs, and the constants that it reads in place.

    Attributes:
        constants: Bytes that the model reads where they are, by file.
    """

    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]
    constants: Mapping[FileIdentity, Sequence[Region]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BoundArgument:
    """Checked argument.

    Attributes:
        location: None for an argument without a value.
        dimensions: Model's and request's combined; those of an output may be partly unknown.
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
        interface: Interface of the model.
        request: Request as received.
        extents: Extent of each pool of the request; None for a token.
        allow_unknown_outputs: Whether outputs may have unknown axes; False for a fenced execution.

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
            raise invalid(f"{name} has no value; its location and dimensions must be empty.")
        return BoundArgument(None, value_type.dimensions)
    if not 0 <= location.pool_index < len(extents):
        raise invalid(
            f"{name} is in pool {location.pool_index}; the request has {len(extents)} pools."
        )
    extent = extents[location.pool_index]
    has_bytes = extent is not None and not extent.is_image
    if extent is None or extent.is_image:
        if location.offset_bytes or location.length_bytes or location.padding_bytes:
            raise invalid(f"{name} uses a whole buffer; its offset, length and padding must be 0.")
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
            "be above 0, the others at least 0."
        )
    if offset + length + padding > pool_bytes:
        raise invalid(
            f"{name} ends at byte {offset + length + padding} of a pool of {pool_bytes} bytes."
        )


def _dimensions(argument: RequestArgument, value_type: ValueType, name: str) -> Dimensions:
    check_dimensions(argument.dimensions, name)
    if value_type.is_scalar and argument.dimensions:
        raise invalid(f"{name} is a scalar; it takes no dimensions.")
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
    """Check that no byte of an output is in another output, an input or a constant."""
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
