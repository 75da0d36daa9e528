"""Calls about models: supported operations, preparation, compilation cache."""

from collections.abc import Sequence
from dataclasses import replace

from tightship.driver.protocol.messages import (
    CacheFiles,
    Prepare,
    PrepareFromCache,
    ReleaseModel,
    SupportedOperations,
)
from tightship.driver.protocol.replies import Done, ModelPrepared, Reply, Supported
from tightship.driver.service.cache import cache_to_read, cache_to_write
from tightship.driver.service.effects import DropModel, FindSupported, PrepareModel, StopPrepare
from tightship.driver.service.events import PrepareFinished, SupportFound
from tightship.driver.service.execution import check_deadline
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.ledger import Incoming, Ledger, Waiting, refuse
from tightship.driver.service.model_checks import check_model, interface_of
from tightship.driver.service.owned import Connection, OwnedModel, OwnedPool
from tightship.driver.service.pools import check_use
from tightship.driver.types.model import FileFormat, Lifetime, Model, ModelFile, ModelSource
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.quota import Resource
from tightship.driver.types.request import FileIdentity, Interface, Region
from tightship.driver.types.status import NO_TIME, ExecutionPreference, Priority, invalid
from tightship.errors import DriverError

_READ = frozenset({PoolMode.COPY, PoolMode.ISOLATED})
"""Modes of pools whose bytes are copied before use."""


def copied_bytes(source: ModelSource | None, pools: Sequence[Pool]) -> int:
    """Return an upper bound of the copied bytes of a checked source, without packed weights.

    Args:
        source: Checked source; None to read a cache, which has packed weights only.
        pools: Pools that the source names, in its order.
    """
    match source:
        case Model():
            return _constants_bytes(source, pools)
        case ModelFile(file_format=FileFormat.ONNX):
            return _part(pools[0], source.length_bytes) + sum(
                _part(pool, pool.extent.size_bytes) for pool in pools[1:]
            )
        case ModelFile(file_format=FileFormat.OPERANDS):  # its constants are not decoded yet
            rest = sum(pool.extent.size_bytes for pool in pools[1:] if pool.mode in _READ)
            return source.length_bytes + rest
    return 0  # mapped, already in the driver, or packed


def _part(pool: Pool, size_bytes: int) -> int:
    return 0 if pool.is_steady else size_bytes


def _constants_bytes(model: Model, pools: Sequence[Pool]) -> int:
    read = {index for index, pool in enumerate(pools) if pool.mode in _READ}
    return sum(
        operand.location.length_bytes
        for subgraph in (model.main, *model.referenced)
        for operand in subgraph.operands
        if operand.lifetime == Lifetime.CONSTANT_REFERENCE and operand.location.pool_index in read
    )


def supported_operations(ledger: Ledger, incoming: Incoming[SupportedOperations]) -> None:
    """Check a model and ask the server which operations it can run."""
    model, connection = incoming.call.model, incoming.connection
    pools = _pools_of(model, connection)
    for owned in pools:
        check_use(owned.pool, to_write=False)
    query = ledger.identifiers.take()
    held = RefCounted(connection.account, beneath=tuple(owned.held for owned in pools))

    def finish(answer: object, _: Connection | None) -> Reply:
        assert isinstance(answer, SupportFound)
        refuse(answer.status, "A pool of the model cannot be mapped.")
        return Supported(answer.operations)

    waiting = Waiting(connection.identifier, incoming.number, connection.account, held, finish)
    ledger.wait(query, waiting)
    for owned in pools:
        owned.held.hold()
    ledger.emit(FindSupported(query, model, tuple(owned.pool for owned in pools)))


def _pools_of(source: ModelSource, connection: Connection) -> list[OwnedPool]:
    """Check a source and return its pools, in its order."""
    if isinstance(source, Model):
        check_model(source, {number: owned.pool for number, owned in connection.pools.items()})
        return [connection.pools[number] for number in source.pools]
    if isinstance(source, ModelFile):
        return _checked_file(source, connection)
    return []


def _checked_file(source: ModelFile, connection: Connection) -> list[OwnedPool]:
    if not 0 <= source.file_format <= FileFormat.PREPARED:
        raise invalid(f"The model has format {source.file_format}; formats are 0 to 2.")
    found = []
    for number in (source.pool, *(each.pool for each in source.externals)):
        owned = connection.pools.get(number)
        if owned is None or owned.pool.extent.is_image:
            raise invalid(f"The model names pool {number}, which is an image or not registered.")
        found.append(owned)
    if len({each.name for each in source.externals}) != len(source.externals):
        raise invalid("The model names an external file twice.")
    size_bytes = found[0].pool.extent.size_bytes
    stop = source.offset_bytes + source.length_bytes
    if source.offset_bytes < 0 or source.length_bytes <= 0 or stop > size_bytes:
        raise invalid(
            f"The model lies at [{source.offset_bytes}, {stop}) of a pool of {size_bytes} bytes."
        )
    return found


def prepare(ledger: Ledger, incoming: Incoming[Prepare]) -> None:
    """Check a model and request its preparation."""
    call = incoming.call
    if not 0 <= call.preference <= ExecutionPreference.SUSTAINED_SPEED:
        raise invalid(f"The preference is {call.preference}; preferences are 0 to 2.")
    _check_terms(call.priority, call.deadline_ns)
    pools = _pools_of(call.source, incoming.connection)
    check_deadline(call.deadline_ns, incoming.now_ns)
    for owned in pools:
        check_use(owned.pool, to_write=False)
    cache = cache_to_write(ledger.settings, call.cache, incoming.files)
    _begin(ledger, incoming, call, pools, cache)


def prepare_from_cache(ledger: Ledger, incoming: Incoming[PrepareFromCache]) -> None:
    """Check the files of a cache and request the preparation of its model."""
    call = incoming.call
    _check_terms(call.priority, call.deadline_ns)
    cache = cache_to_read(ledger.settings, call.cache, incoming.files)
    check_deadline(call.deadline_ns, incoming.now_ns)
    _begin(ledger, incoming, call, [], cache)


def _check_terms(priority: int, deadline_ns: int) -> None:
    if not 0 <= priority <= Priority.HIGH:
        raise invalid(f"The priority is {priority}; priorities are 0 to 2.")
    if deadline_ns < NO_TIME:
        raise invalid(f"The deadline is {deadline_ns} ns; it must be at least -1.")


def _begin(
    ledger: Ledger,
    incoming: Incoming[Prepare] | Incoming[PrepareFromCache],
    call: Prepare | PrepareFromCache,
    pools: list[OwnedPool],
    cache: CacheFiles | None,
) -> None:
    connection = incoming.connection
    number = ledger.identifiers.take()
    source = call.source if isinstance(call, Prepare) else None
    held = RefCounted(connection.account)
    model = OwnedModel(number, call.priority, held, _interface(source, pools))
    kept = [] if cache is None else [*cache.model_files, *cache.data_files]
    handles = tuple(incoming.files[index].handle for index in kept)
    waiting = Waiting(
        connection.identifier,
        incoming.number,
        connection.account,
        held,
        lambda answer, client: _prepared(model, answer, client),
        handles,
        StopPrepare(number),
    )
    try:
        held.charge(Resource.MODELS)
        held.charge(Resource.COPY_BYTES, copied_bytes(source, [owned.pool for owned in pools]))
        ledger.wait(number, waiting)
    except DriverError:
        ledger.release(held)
        raise
    held.ending = DropModel(number)
    held.beneath = tuple(owned.held.hold() for owned in pools)
    incoming.kept.update(kept)
    if call.deadline_ns != NO_TIME:
        ledger.timers.set(number, call.deadline_ns)
    preference = (
        call.preference if isinstance(call, Prepare) else ExecutionPreference.FAST_SINGLE_ANSWER
    )
    ledger.emit(
        PrepareModel(
            number,
            source,
            tuple(owned.pool for owned in pools),
            preference,
            call.deadline_ns,
            None if cache is None else _by_handle(cache, incoming),
            call.priority,
        )
    )


def _by_handle(
    cache: CacheFiles, incoming: Incoming[Prepare] | Incoming[PrepareFromCache]
) -> CacheFiles:
    return replace(
        cache,
        model_files=tuple(incoming.files[index].handle for index in cache.model_files),
        data_files=tuple(incoming.files[index].handle for index in cache.data_files),
    )


def _interface(source: ModelSource | None, pools: list[OwnedPool]) -> Interface:
    """Return the interface before preparation: a file's has only the bytes that are read."""
    if isinstance(source, Model):
        return interface_of(source, {owned.pool.identifier: owned.pool for owned in pools})
    constants: dict[FileIdentity, list[Region]] = {}
    for owned in pools:
        extent = owned.pool.extent
        region = Region(extent.file, extent.offset_bytes, extent.offset_bytes + extent.size_bytes)
        constants.setdefault(extent.file, []).append(region)
    return Interface((), (), constants)


def _prepared(model: OwnedModel, answer: object, client: Connection | None) -> Reply | None:
    assert isinstance(answer, PrepareFinished)
    refuse(answer.status, answer.message or "The model cannot be prepared.")
    if client is None:
        return None
    if not model.interface.outputs:
        model.interface = replace(model.interface, inputs=answer.inputs, outputs=answer.outputs)
    model.held.hold()
    client.models[model.identifier] = model
    declared = model.interface
    return ModelPrepared(
        model.identifier, answer.inputs or declared.inputs, answer.outputs or declared.outputs
    )


def release_model(ledger: Ledger, incoming: Incoming[ReleaseModel]) -> Reply:
    """Release a model; it is dropped once no execution uses it."""
    model = incoming.connection.models.pop(incoming.call.model, None)
    if model is None:
        raise invalid(f"Model {incoming.call.model} is not prepared.")
    model.recent.clear()
    ledger.release(model.held)
    return Done()
