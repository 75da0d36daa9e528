"""Checks of a model before its preparation: rules R1 to R14."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tightship.driver.types.dimensions import is_specified
from tightship.driver.types.model import NOWHERE, Lifetime, Model, Operand, Subgraph
from tightship.driver.types.operand_type import OperandType, check_value_type, element_bytes
from tightship.driver.types.pools import Pool
from tightship.driver.types.request import FileIdentity, Interface, Region
from tightship.driver.types.status import invalid

_WRITTEN = frozenset({Lifetime.TEMPORARY_VARIABLE, Lifetime.SUBGRAPH_OUTPUT})


def check_model(model: Model, pools: Mapping[int, Pool]) -> None:
    """Check a model of operands.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    for identifier in model.pools:
        pool = pools.get(identifier)
        if pool is None:
            raise invalid(f"The model names pool {identifier}, which is not registered.")
        if pool.extent.is_image:
            raise invalid(f"Pool {identifier} is an image, which cannot hold constants.")
    room = _Room(
        len(model.operand_values),
        tuple(pools[identifier].extent.size_bytes for identifier in model.pools),
        len(model.referenced),
    )
    for name, subgraph in _named(model):
        _check_operands(subgraph, room, name)
        _check_ends(subgraph, name)
        _check_operations(subgraph, name)
    _check_references(model)


def interface_of(model: Model, pools: Mapping[int, Pool]) -> Interface:
    """Return the types of a checked model's inputs and outputs, and its constants in pools."""
    main = model.main
    constants: dict[FileIdentity, list[Region]] = defaultdict(list)
    for _, subgraph in _named(model):
        for operand in subgraph.operands:
            if operand.lifetime == Lifetime.CONSTANT_REFERENCE:
                extent = pools[model.pools[operand.location.pool_index]].extent
                constants[extent.file].append(extent.region(operand.location))
    return Interface(
        tuple(main.operands[index].value_type for index in main.input_indexes),
        tuple(main.operands[index].value_type for index in main.output_indexes),
        constants,
    )


def _named(model: Model) -> list[tuple[str, Subgraph]]:
    others = [(f"Subgraph {index}", each) for index, each in enumerate(model.referenced)]
    return [("The main subgraph", model.main), *others]


@dataclass(frozen=True, slots=True)
class _Room:
    """Upper bounds of locations."""

    values_bytes: int
    pools_bytes: tuple[int, ...]
    subgraph_count: int


def _check_operands(subgraph: Subgraph, room: _Room, name: str) -> None:
    if not subgraph.operands or not subgraph.operations or not subgraph.output_indexes:
        raise invalid(f"{name} needs an operand, an operation and an output.")
    for index, operand in enumerate(subgraph.operands):
        what = f"{name}, operand {index}"
        if not 0 <= operand.lifetime <= Lifetime.SUBGRAPH:
            raise invalid(f"{what} has lifetime {operand.lifetime}; lifetimes are 0 to 6.")
        check_value_type(operand.value_type, what)
        if operand.location.padding_bytes:
            raise invalid(f"{what} has padding; only arguments of a request may.")
        _check_location(operand, room, what)


def _check_location(operand: Operand, room: _Room, what: str) -> None:
    location = operand.location
    is_subgraph = operand.lifetime == Lifetime.SUBGRAPH
    if is_subgraph != (operand.value_type.operand_type == OperandType.SUBGRAPH):
        raise invalid(f"{what} must be a subgraph by both its type and its lifetime, or neither.")
    if is_subgraph:
        if location.pool_index or location.length_bytes:
            raise invalid(f"{what} is a subgraph; only the offset of its location may be set.")
        if not 0 <= location.offset_bytes < room.subgraph_count:
            count = room.subgraph_count
            raise invalid(f"{what} names subgraph {location.offset_bytes}; the model has {count}.")
    elif operand.lifetime == Lifetime.CONSTANT_COPY:
        if location.pool_index:
            raise invalid(f"{what} is copied; its pool index must be 0.")
        _check_constant(operand, room.values_bytes, what)
    elif operand.lifetime == Lifetime.CONSTANT_REFERENCE:
        _check_referenced(operand, room, what)
    elif location != NOWHERE:
        raise invalid(f"{what} is not a constant; its location must be all 0.")


def _check_referenced(operand: Operand, room: _Room, what: str) -> None:
    location = operand.location
    if not 0 <= location.pool_index < len(room.pools_bytes):
        raise invalid(
            f"{what} is in pool {location.pool_index}; the model has {len(room.pools_bytes)}."
        )
    if location.offset_bytes % element_bytes(operand.value_type.operand_type):
        raise invalid(f"{what} does not lie at a multiple of its element's size.")
    _check_constant(operand, room.pools_bytes[location.pool_index], what)


def _check_constant(operand: Operand, room_bytes: int, what: str) -> None:
    value_type, location = operand.value_type, operand.location
    if not is_specified(value_type.dimensions, is_scalar=value_type.is_scalar):
        raise invalid(f"{what} is a constant; its rank and every axis must be known.")
    if location.length_bytes != value_type.size_bytes:
        raise invalid(
            f"{what} has a length of {location.length_bytes} bytes; its value takes "
            f"{value_type.size_bytes}."
        )
    stop = location.offset_bytes + location.length_bytes
    if location.offset_bytes < 0 or stop > room_bytes:
        raise invalid(f"{what} lies at [{location.offset_bytes}, {stop}) of {room_bytes} bytes.")


def _check_ends(subgraph: Subgraph, name: str) -> None:
    """Check that inputs and outputs list each operand of their lifetime once."""
    for lifetime, indexes in (
        (Lifetime.SUBGRAPH_INPUT, subgraph.input_indexes),
        (Lifetime.SUBGRAPH_OUTPUT, subgraph.output_indexes),
    ):
        needed = {
            index for index, operand in enumerate(subgraph.operands) if operand.lifetime == lifetime
        }
        if len(set(indexes)) != len(indexes) or set(indexes) != needed:
            raise invalid(
                f"{name} must list each operand of lifetime {lifetime.name} once, and no other."
            )


def _check_operations(subgraph: Subgraph, name: str) -> None:
    """Check that every value is written once, before it is read."""
    operands = subgraph.operands
    written: set[int] = set()
    for position, operation in enumerate(subgraph.operations):
        what = f"{name}, operation {position}"
        if operation.operation_type < 0:
            raise invalid(f"{what} has type {operation.operation_type}; types are at least 0.")
        if not operation.outputs:
            raise invalid(f"{what} writes nothing.")
        for index in (*operation.inputs, *operation.outputs):
            if not 0 <= index < len(operands):
                raise invalid(f"{what} uses operand {index}; the subgraph has {len(operands)}.")
        for index in operation.inputs:
            if operands[index].lifetime in _WRITTEN and index not in written:
                raise invalid(f"{what} reads operand {index} before it is written.")
        for index in operation.outputs:
            _check_written(operands[index], index in written, f"{what}, operand {index}")
            written.add(index)
    needed = {index for index, each in enumerate(operands) if each.lifetime in _WRITTEN}
    if needed - written:
        raise invalid(f"{name}, operand {min(needed - written)} is never written.")


def _check_written(operand: Operand, is_written: bool, what: str) -> None:  # noqa: FBT001
    if operand.lifetime not in _WRITTEN:
        raise invalid(f"{what} is written; its lifetime {operand.lifetime} does not allow that.")
    if is_written:
        raise invalid(f"{what} is written a second time.")


def _check_references(model: Model) -> None:
    """Check that no subgraph reaches itself."""
    targets = {
        number: {
            operand.location.offset_bytes
            for operand in subgraph.operands
            if operand.lifetime == Lifetime.SUBGRAPH
        }
        for number, subgraph in enumerate(model.referenced)
    }
    try:
        TopologicalSorter(targets).prepare()
    except CycleError as error:
        raise invalid("The subgraphs refer to each other in a cycle.") from error
