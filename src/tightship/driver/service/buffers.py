"""Buffers of the driver: their roles, contents and readers and writers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tightship.driver.protocol.messages import Allocate, Role
from tightship.driver.service.holds import RefCounted
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.operand_type import ValueType, check_dimensions, size_bytes
from tightship.driver.types.request import Interface
from tightship.driver.types.status import failure, invalid

RoleKey = tuple[int, bool, int]
"""Identifier of a model, whether the role is an output, and its index."""


def check_allocation(
    call: Allocate, interfaces: Mapping[int, Interface]
) -> tuple[ValueType, frozenset[RoleKey]]:
    """Check a call and return the buffer's type and roles.

    Args:
        call: Call as received.
        interfaces: Interfaces of the client's prepared models, by identifier.

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
    first = types[0]
    if first.is_scalar and dimensions:
        raise invalid("The buffer is for a scalar; it takes no dimensions.")
    for value_type in types:
        if _kind(value_type) != _kind(first):
            raise invalid("The roles of a buffer differ in type or quantization.")
        combined = combine(dimensions, value_type.dimensions)
        if combined is None:
            raise invalid("The dimensions of the buffer contradict those of its roles.")
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
        raise invalid(
            f"A role names model {role.model_index}; the call lists {len(call.models)} models."
        )
    model = call.models[role.model_index]
    types = interfaces[model].outputs if is_output else interfaces[model].inputs
    if not 0 <= role.io_index < len(types):
        kind = "output" if is_output else "input"
        raise invalid(f"A role names {kind} {role.io_index}; model {model} has {len(types)}.")
    if not 0 < role.probability <= 1:
        raise invalid(f"A role has probability {role.probability}; it must be in (0, 1].")
    return (model, is_output, role.io_index), types[role.io_index]


@dataclass(slots=True, eq=False)
class Buffer:
    """Buffer of the driver.

    Attributes:
        value_type: Type with the dimensions of the allocation, which may be partly unknown.
        dimensions: Dimensions of the contents; those of the allocation while there are none.
        version: Count of the times that the contents appeared, vanished or changed dimensions.
        is_written, reader_count: Current users: one writer or any number of readers.
        expected: Dimensions in which accepted executions will leave the buffer, in their order.
    """

    token: int
    value_type: ValueType
    roles: frozenset[RoleKey]
    held: RefCounted
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
        """Size of the contents or the future contents; 0 if unknown."""
        return size_bytes(self.value_type.operand_type, self.dimensions)

    def fill(self, dimensions: Dimensions) -> None:
        """Record that it now holds a value of these dimensions."""
        if not self.is_initialised or self.dimensions != dimensions:
            self.version += 1
        self.dimensions = dimensions
        self.is_initialised = True

    def clear(self) -> None:
        """Record that it now holds nothing."""
        self.version += 1
        self.dimensions = self.value_type.dimensions
        self.is_initialised = False

    def check_filled(self, *, is_expected: bool = False) -> None:
        """Check that the buffer can be read.

        Args:
            is_expected: Whether a value suffices that an accepted execution will write.

        Raises:
            DriverError: GENERAL_FAILURE: it holds no value.
        """
        if not (self.is_initialised or (is_expected and self.expected)):
            raise failure("A buffer to read holds no value; fill it first.")

    def check_read(self, dimensions: Dimensions, *, is_expected: bool = False) -> None:
        """Check that the current or the expected contents have the dimensions to be read.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        held = self.dimensions
        if self.expected and is_expected:
            held = next(reversed(self.expected.values()))
        if combine(dimensions, held) is None:
            raise invalid(
                f"A buffer holds a value of {list(held)}; it cannot be read as {list(dimensions)}."
            )

    def check_written(self, dimensions: Dimensions) -> Dimensions:
        """Check that a result may be written; return its dimensions merged with the buffer's.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        combined = combine(dimensions, self.value_type.dimensions)
        if combined is None:
            raise invalid(
                f"A buffer for {list(self.value_type.dimensions)} cannot be written as "
                f"{list(dimensions)}."
            )
        return combined

    def check_role(self, key: RoleKey) -> None:
        """Check that the buffer was allocated for a role.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        if key not in self.roles:
            direction = "output" if key[1] else "input"
            raise invalid(f"A buffer has no role as {direction} {key[2]} of model {key[0]}.")

    def check_copy_from(self, pool_bytes: int, dimensions: Dimensions) -> Dimensions:
        """Check a copy from a pool of `pool_bytes`; return the dimensions of the new contents.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        check_dimensions(dimensions, "The copy")
        is_scalar = self.value_type.is_scalar
        if is_scalar and dimensions:
            raise invalid("The buffer is for a scalar; its copy takes no dimensions.")
        if dimensions and 0 in dimensions:
            raise invalid(f"A copy has dimensions {list(dimensions)}; all must be known.")
        combined = combine(self.value_type.dimensions, dimensions)
        if combined is None:
            raise invalid(
                f"A buffer for {list(self.value_type.dimensions)} cannot be filled with "
                f"{list(dimensions)}."
            )
        if not is_specified(combined, is_scalar=is_scalar):
            raise invalid("The dimensions of the buffer are unknown; the copy must give them.")
        self._check_size(size_bytes(self.value_type.operand_type, combined), pool_bytes)
        return combined

    def check_copy_to(self, pool_bytes: int) -> None:
        """Check that the buffer can be copied to a pool of `pool_bytes`.

        Raises:
            DriverError: INVALID_ARGUMENT: the sizes differ; then GENERAL_FAILURE: it holds no
                value.
        """
        if self.size_bytes:
            self._check_size(self.size_bytes, pool_bytes)
        if not self.is_initialised:
            raise failure("A buffer to copy holds no value; fill it first.")

    def check_copy_of(self, source: "Buffer") -> Dimensions:
        """Check a copy of another buffer; return the dimensions of the new contents.

        Raises:
            DriverError: INVALID_ARGUMENT: types or dimensions differ; then GENERAL_FAILURE: the
                source holds no value.
        """
        if _kind(source.value_type) != _kind(self.value_type):
            raise invalid("Two buffers differ in type or quantization.")
        if combine(self.value_type.dimensions, source.dimensions) is None:
            raise invalid(
                f"A buffer for {list(self.value_type.dimensions)} cannot be filled from one of "
                f"{list(source.dimensions)}."
            )
        source.check_filled()
        return source.dimensions

    def _check_size(self, needed: int, had: int) -> None:
        if needed != had:
            raise invalid(f"The pool has {had} bytes; the buffer has {needed}.")

    def begin(self, *, to_write: bool) -> None:
        """Register a reader or the writer.

        Raises:
            DriverError: GENERAL_FAILURE: there is a writer, or a new writer meets readers.
        """
        if self.is_written or (to_write and self.reader_count):
            raise failure("A buffer is written while it is in use.")
        if to_write:
            self.is_written = True
        else:
            self.reader_count += 1

    def end(self, *, to_write: bool) -> None:
        """Remove a reader or the writer."""
        if to_write:
            self.is_written = False
        else:
            self.reader_count -= 1
