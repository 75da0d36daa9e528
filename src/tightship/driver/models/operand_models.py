"""Loading of models built of operands."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.pool_file import PoolFile
from tightship.driver.models.deferred_routines import DeferredRoutines
from tightship.driver.models.loaded import Loaded
from tightship.driver.models.loader import Loader
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.models.open_subgraph_sequence import OpenSubgraphSequence
from tightship.driver.nnapi import check_open, is_open, routine_of, supported_operations
from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.routine import GraphStage
from tightship.driver.protocol.codec import decode_model
from tightship.driver.service.effects import FindSupported
from tightship.driver.service.events import SupportFound
from tightship.driver.service.model_checks import check_model
from tightship.driver.types.model import Model, ModelFile
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.status import EXHAUSTED, ErrorStatus
from tightship.errors import DriverError, TightshipError

_LOG = logging.getLogger(__name__)


def operand_model(
    model: Model, pools: Sequence[Pool], mappings: Mappings, loader: Loader
) -> Loaded:
    """Load a checked model; `pools` are those it names, in its order.

    Raises:
        DriverError: As from `graph_of`; GENERAL_FAILURE: a pool cannot be mapped or read.
        TightshipError: The engine refuses it.
    """
    main = model.main
    files = _files(pools, mappings)
    once = loader.once()  # a prepared file holds one program only
    late = DeferredRoutines(once)
    translate = partial(routine_of, model, files)
    rows = main.input_indexes, main.output_indexes
    if is_open(model):
        check_open(model, files)
        inputs, outputs = [_types(model, row, {}) for row in rows]
        declared = [kind.dimensions for kind in inputs]
        runs = OpenOperands(translate, declared, once, late.run)
        return Loaded(runs, inputs, outputs, late=late)
    routine = translate()
    inputs, outputs = [_types(model, row, routine.tensors) for row in rows]
    match routine.stages:
        case (GraphStage() as stage,):
            return Loaded(loader.model(stage.graph), inputs, outputs)
    return Loaded(
        OpenSubgraphSequence(routine, translate, once, late.run), inputs, outputs, late=late
    )


def operand_file(
    source: ModelFile, pools: Sequence[Pool], mappings: Mappings, loader: Loader
) -> Loaded:
    """Load a model from the first pool; the others are those it may name.

    Raises:
        DriverError: As from `operand_model`; INVALID_ARGUMENT: the model breaks a rule.
        FormatError: The bytes are not a valid model.
    """
    data = mappings.read(pools[0], source.offset_bytes, source.length_bytes)
    model = decode_model(data.tobytes())
    named = {pool.identifier: pool for pool in pools[1:]}
    check_model(model, named)
    return operand_model(model, [named[number] for number in model.pools], mappings, loader)


def find_supported(asked: FindSupported, mappings: Mappings) -> SupportFound:
    """Find which operations of a model can be run."""
    try:
        found = supported_operations(asked.model, _files(asked.pools, mappings))
    except DriverError as error:
        return SupportFound(asked.query, ErrorStatus(error.status))
    except EXHAUSTED:
        return SupportFound(asked.query, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
    except TightshipError:
        return SupportFound(asked.query, ErrorStatus.GENERAL_FAILURE)
    except Exception as error:  # noqa: BLE001 - a client's model must not end the driver
        _LOG.error("Checking a client's model failed with an unexpected error.", exc_info=error)
        return SupportFound(asked.query, ErrorStatus.GENERAL_FAILURE)
    return SupportFound(asked.query, ErrorStatus.NONE, found)


def _files(pools: Sequence[Pool], mappings: Mappings) -> list[PoolFile]:
    for pool in pools:
        if pool.mode is PoolMode.SEALED:
            mappings.map(pool)  # refuses a bad pool even if nothing reads it
    return [PoolFile(mappings, pool) for pool in pools]


def _types(
    model: Model, indexes: Sequence[int], tensors: Mapping[int, Tensor]
) -> tuple[ValueType, ...]:
    """Return the types of operands, with the dimensions found by translation."""
    types = [(index, model.main.operands[index].value_type) for index in indexes]
    return tuple(
        replace(each, dimensions=tensors[index].shape) if index in tensors else each
        for index, each in types
    )
