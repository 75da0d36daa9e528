"""Buffers of the driver: what they may be used as, and whether they hold anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tightship.driver.protocol.messages import Allocate, Role
from tightship.driver.service.holds import Held
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.operand_type import ValueType, check_dimensions, size_bytes
from tightship.driver.types.request import Interface
from tightship.driver.types.status import failure, invalid

RoleKey = tuple[int, bool, int]
"""Model, whether it is an output, index."""


def check_allocation(
    call: Allocate, interfaces: Mapping[int, Interface]
) -> tuple[ValueType, frozenset[RoleKey]]:
    """What a buffer is to hold, and its roles.

    Args:
        call: Any.
        interfaces: Of the client's prepared models.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    if not call.models or not (call.input_roles or call.output_roles):
        raise invalid("A buffer needs a model and a role.")
    for model in call.models:
        if model not in interfaces:
            raise invalid(f"Model {model} is not prepared.")
    check_dimensions(call.dimensions, "The buffer")
    types: dict[RoleKey, ValueType] = {}
    for is_output, rows in ((False, call.input_roles), (True, call.output_roles)):
        for role in rows:
            key, value_type = _role(call, interfaces, role, is_output=is_output)
            if key in types:
                raise invalid(f"Role {key[2]} of model {key[0]} is given twice.")
            types[key] = value_type
    return _common(list(types.values()), call.dimensions), frozenset(types)


def _common(types: Sequence[ValueType], dimensions: Dimensions) -> ValueType:
    """The type that fits all roles and the dimensions of the buffer."""
    first = types[0]
    if first.is_scalar and dimensions:
        raise invalid("The buffer is for a scalar and is given dimensions.")
    for value_type in types:
        if _kind(value_type) != _kind(first):
            raise invalid("The roles of a buffer differ in type or quantization.")
        combined = combine(dimensions, value_type.dimensions)
        if combined is None:
            raise invalid("The dimensions of the buffer and of its roles contradict.")
        dimensions = combined
    return replace(first, dimensions=dimensions)


def _kind(value_type: ValueType) -> tuple[int, float, int, bytes]:
    return (
        value_type.operand_type,
        value_type.scale,
        value_type.zero_point,
        value_type.extra_params,
    )


def _role(
    call: Allocate, interfaces: Mapping[int, Interface], role: Role, *, is_output: bool
) -> tuple[RoleKey, ValueType]:
    if not 0 <= role.model_index < len(call.models):
        raise invalid(f"A role is of model {role.model_index} of {len(call.models)}.")
    model = call.models[role.model_index]
    types = interfaces[model].outputs if is_output else interfaces[model].inputs
    if not 0 <= role.io_index < len(types):
        raise invalid(f"A role is argument {role.io_index} of {len(types)}.")
    if not 0 < role.probability <= 1:
        raise invalid(f"A role has probability {role.probability}; it is above 0, at most 1.")
    return (model, is_output, role.io_index), types[role.io_index]


@dataclass(slots=True, eq=False)
class Buffer:
    """A buffer, until nobody holds it.

    Attributes:
        value_type: With the dimensions of the allocation, known or not.
        dimensions: Of what it holds; those of the allocation while it holds nothing.
        version: Counts how often it came to hold something, nothing, or other dimensions.
        is_written, reader_count: Who is at it now: one writer or any number of readers.
        expected: Dimensions that executions which wait for fences will leave it with, in order.
    """

    token: int
    value_type: ValueType
    roles: frozenset[RoleKey]
    held: Held
    dimensions: Dimensions = ()
    is_initialised: bool = False
    version: int = 0
    is_written: bool = False
    reader_count: int = 0
    expected: dict[int, Dimensions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dimensions = self.value_type.dimensions

    @property
    def size_bytes(self) -> int:
        """Bytes of what it holds, or will; 0 while that is not known."""
        return size_bytes(self.value_type.operand_type, self.dimensions)

    def fill(self, dimensions: Dimensions) -> None:
        """It holds a value of these dimensions."""
        if not self.is_initialised or self.dimensions != dimensions:
            self.version += 1
        self.dimensions = dimensions
        self.is_initialised = True

    def clear(self) -> None:
        """It holds nothing."""
        self.version += 1
        self.dimensions = self.value_type.dimensions
        self.is_initialised = False

    def check_filled(self, *, is_expected: bool = False) -> None:
        """Check that it holds something to read.

        Args:
            is_expected: It is enough that an execution which was accepted will fill it.

        Raises:
            DriverError: GENERAL_FAILURE.
        """
        if not (self.is_initialised or (is_expected and self.expected)):
            raise failure("A buffer is read that holds nothing.")

    def check_read(self, dimensions: Dimensions, *, is_expected: bool = False) -> None:
        """Check that what it holds, or is expected to, has dimensions of model and request.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        held = self.dimensions
        if self.expected and is_expected:
            held = next(reversed(self.expected.values()))
        if combine(dimensions, held) is None:
            raise invalid(
                f"A buffer holds a value of {list(held)} and is read as {list(dimensions)}."
            )

    def check_written(self, dimensions: Dimensions) -> Dimensions:
        """Check that a result of some dimensions may go there; all that is known of those.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        combined = combine(dimensions, self.value_type.dimensions)
        if combined is None:
            raise invalid(
                f"A buffer is for {list(self.value_type.dimensions)} and is written as "
                f"{list(dimensions)}."
            )
        return combined

    def check_role(self, key: RoleKey) -> None:
        """Check that it was allocated for a role.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        if key not in self.roles:
            direction = "output" if key[1] else "input"
            raise invalid(f"A buffer has no role as {direction} {key[2]} of model {key[0]}.")

    def check_copy_from(self, pool_bytes: int, dimensions: Dimensions) -> Dimensions:
        """The dimensions that the buffer has after it is filled from a pool of some bytes.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        check_dimensions(dimensions, "The copy")
        is_scalar = self.value_type.is_scalar
        if is_scalar and dimensions:
            raise invalid("A scalar is copied with dimensions.")
        if dimensions and 0 in dimensions:
            raise invalid(f"A copy has dimensions {list(dimensions)}; all must be known.")
        combined = combine(self.value_type.dimensions, dimensions)
        if combined is None:
            raise invalid(
                f"A buffer for {list(self.value_type.dimensions)} is filled with "
                f"{list(dimensions)}."
            )
        if not is_specified(combined, is_scalar=is_scalar):
            raise invalid("The dimensions of the buffer are not known; the copy must say them.")
        self._check_size(size_bytes(self.value_type.operand_type, combined), pool_bytes)
        return combined

    def check_copy_to(self, pool_bytes: int) -> None:
        """Check that the buffer can be written to a pool of some bytes.

        Raises:
            DriverError: INVALID_ARGUMENT, then GENERAL_FAILURE if it holds nothing.
        """
        if self.size_bytes:
            self._check_size(self.size_bytes, pool_bytes)
        if not self.is_initialised:
            raise failure("A buffer is copied that holds nothing.")

    def check_copy_of(self, source: "Buffer") -> Dimensions:
        """The dimensions that the buffer has after it is filled from another one.

        Raises:
            DriverError: INVALID_ARGUMENT: types or dimensions differ; then GENERAL_FAILURE if the
                other one holds nothing.
        """
        if _kind(source.value_type) != _kind(self.value_type):
            raise invalid("Two buffers differ in type or quantization.")
        if combine(self.value_type.dimensions, source.dimensions) is None:
            raise invalid(
                f"A buffer for {list(self.value_type.dimensions)} is filled from one of "
                f"{list(source.dimensions)}."
            )
        source.check_filled()
        return source.dimensions

    def _check_size(self, needed: int, had: int) -> None:
        if needed != had:
            raise invalid(f"The pool has {had} bytes; the buffer has {needed}.")

    def begin(self, *, to_write: bool) -> None:
        """Somebody reads or writes it from now on.

        Raises:
            DriverError: GENERAL_FAILURE: it is in use, and one of both is a writer.
        """
        if self.is_written or (to_write and self.reader_count):
            raise failure("A buffer is written while it is in use.")
        if to_write:
            self.is_written = True
        else:
            self.reader_count += 1

    def end(self, *, to_write: bool) -> None:
        """What `begin` said is over."""
        if to_write:
            self.is_written = False
        else:
            self.reader_count -= 1
