"""Checks that turn a request into a run, in the order of the specification.

First the request by itself and against its model, then the deadline, then pools and tokens one by
one, then the use of each buffer.
"""

import operator
from collections.abc import Sequence

from tightship.driver.service.buffers import Buffer
from tightship.driver.service.effects import RunArgument
from tightship.driver.service.execution import BufferUse, check_deadline
from tightship.driver.service.owned import Asked, Bound, Checked, Connection, OwnedModel, OwnedPool
from tightship.driver.service.pools import check_use
from tightship.driver.types.quota import Resource
from tightship.driver.types.request import BoundArgument, BoundRequest, Request, check_request
from tightship.driver.types.status import NO_TIME, invalid


def model_of(connection: Connection, number: int) -> OwnedModel:
    """Return a prepared model of the client.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    model = connection.models.get(number)
    if model is None:
        raise invalid(f"Model {number} is not prepared.")
    return model


def pools_of(connection: Connection, request: Request) -> list[OwnedPool | None]:
    """Return the pools of a request, None in place of each token.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    found: list[OwnedPool | None] = []
    for pool in request.pools:
        if pool.is_token:
            found.append(None)
            continue
        owned = connection.pools.get(pool.identifier)
        if owned is None:
            raise invalid(f"Pool {pool.identifier} is not registered.")
        found.append(owned)
    return found


def check_asked(asked: Asked) -> Checked:
    """Check a request by itself and against its model.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    for known in asked.model.recent:
        if known.is_of(asked):
            return known
    bound = check_request(
        asked.model.interface,
        asked.request,
        [None if owned is None else owned.pool.extent for owned in asked.pools],
        allow_unknown_outputs=not asked.is_fenced,
    )
    checked = Checked(asked, bound)
    asked.model.recent.append(checked)
    return checked


def bind(
    connection: Connection, checked: Checked, deadline_ns: int = NO_TIME, now_ns: int = 0
) -> Bound:
    """Check deadline, pools and buffers of a request that `check_asked` has accepted.

    Raises:
        DriverError: MISSED_DEADLINE_PERSISTENT, then GENERAL_FAILURE or INVALID_ARGUMENT.
    """
    check_deadline(deadline_ns, now_ns)
    uses = buffer_uses(connection, checked)
    for use in uses:
        if not use.is_output:
            use.buffer.check_filled(is_expected=True)
    fitted = [_fitted(use) for use in uses]
    room_bytes = connection.account.room(Resource.BUFFER_BYTES) if uses else 0
    rooms = tuple([room_bytes + _charged_bytes(use.buffer) for use in fitted if use.is_output])
    known = checked.bound
    if known is None or rooms != checked.rooms or not _are(known.uses, fitted):
        known = checked.bound = _bound(checked, fitted, room_bytes)
        checked.rooms = rooms
    return known


def _charged_bytes(buffer: Buffer) -> int:
    return buffer.held.charges[Resource.BUFFER_BYTES]


def _are(known: Sequence[BufferUse], uses: Sequence[BufferUse]) -> bool:
    return len(known) == len(uses) and all(map(operator.is_, known, uses))


def _bound(checked: Checked, uses: Sequence[BufferUse], room_bytes: int) -> Bound:
    asked, request = checked.asked, checked.request
    by_key = {use.key[1:]: use.buffer for use in uses}
    return Bound(
        _arguments(asked, request.inputs, by_key, is_output=False),
        _arguments(asked, request.outputs, by_key, is_output=True, room_bytes=room_bytes),
        tuple(uses),
    )


def buffer_uses(connection: Connection, checked: Checked) -> Sequence[BufferUse]:
    """Check pools and tokens and the role of each buffer; cached while the buffers are the same.

    Raises:
        DriverError: GENERAL_FAILURE: a pool cannot be used; INVALID_ARGUMENT otherwise.
    """
    known, held = checked.buffers, connection.buffers
    if known is None or any(held.get(each.token) is not each for each in known):
        buffers = _buffers(connection, checked)
        checked.uses = tuple(_uses(checked.asked, checked.request, buffers) if buffers else ())
        checked.buffers = tuple(buffers.values())
    return checked.uses


def _buffers(connection: Connection, checked: Checked) -> dict[int, Buffer]:
    asked, bound = checked.asked, checked.request
    written = {each.location.pool_index for each in bound.outputs if each.location is not None}
    read = {each.location.pool_index for each in bound.inputs if each.location is not None}
    buffers: dict[int, Buffer] = {}
    for index, (pool, owned) in enumerate(zip(asked.request.pools, asked.pools, strict=True)):
        if owned is not None:
            if index in written or index not in read:
                check_use(owned.pool, to_write=index in written)
            if index in read:
                check_use(owned.pool, to_write=False)
        elif pool.identifier in connection.buffers:
            buffers[index] = connection.buffers[pool.identifier]
        else:
            raise invalid(f"Buffer {pool.identifier} is not allocated.")
    return buffers


def _uses(asked: Asked, bound: BoundRequest, buffers: dict[int, Buffer]) -> list[BufferUse]:
    inputs = _in_buffers(bound.inputs, buffers)
    outputs = _in_buffers(bound.outputs, buffers)
    written = [buffer.token for _, buffer, _ in outputs]
    if len(set(written)) < len(written):
        raise invalid("Two outputs use the same buffer; each needs its own.")
    if not {buffer.token for _, buffer, _ in inputs}.isdisjoint(written):
        raise invalid("An input and an output use the same buffer; each needs its own.")
    model = asked.model.identifier
    uses = [BufferUse(buffer, (model, False, index), each) for index, buffer, each in inputs]
    uses += [BufferUse(buffer, (model, True, index), each) for index, buffer, each in outputs]
    for use in uses:
        use.buffer.check_role(use.key)
    return uses


def _fitted(use: BufferUse) -> BufferUse:
    """Check a use against its buffer and complete an output's dimensions from it."""
    if use.is_output:
        dimensions = use.buffer.check_written(use.dimensions)
        if dimensions != use.dimensions:
            return BufferUse(use.buffer, use.key, dimensions)
        return use
    use.buffer.check_read(use.dimensions, is_expected=True)
    return use


def _in_buffers(
    arguments: Sequence[BoundArgument], buffers: dict[int, Buffer]
) -> list[tuple[int, Buffer, tuple[int, ...]]]:
    return [
        (index, buffers[each.location.pool_index], each.dimensions)
        for index, each in enumerate(arguments)
        if each.location is not None and each.location.pool_index in buffers
    ]


def _arguments(
    asked: Asked,
    arguments: Sequence[BoundArgument],
    buffers: dict[tuple[bool, int], Buffer],
    *,
    is_output: bool,
    room_bytes: int = 0,
) -> tuple[RunArgument, ...]:
    found = []
    for index, each in enumerate(arguments):
        if each.location is None:
            found.append(RunArgument(each.dimensions))
            continue
        owned = asked.pools[each.location.pool_index]
        if owned is not None:
            found.append(RunArgument(each.dimensions, each.location, owned.pool))
            continue
        buffer = buffers[is_output, index]
        room = _charged_bytes(buffer) + room_bytes if is_output else 0
        found.append(RunArgument(each.dimensions, token=buffer.token, room_bytes=room))
    return tuple(found)
