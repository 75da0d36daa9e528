"""Loading of what clients prepare: ONNX files, prepared models, models of operands."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.pool_file import is_steady, path_of, steady_bytes, steady_file
from tightship.driver.models.loaded import Loaded, loaded
from tightship.driver.models.loader import Loader
from tightship.driver.models.open_onnx import leaves_lengths_open, open_onnx
from tightship.driver.models.operand_models import operand_file, operand_model
from tightship.driver.printable import printable
from tightship.driver.types.model import FileFormat, Model, ModelFile, NamedFile
from tightship.driver.types.pools import Pool
from tightship.driver.types.status import failure
from tightship.errors import DriverError
from tightship.frontend.onnx import OnnxFile, open_bytes
from tightship.graph import Graph

ONNX_BYTES_MAX = (1 << 31) - 1
"""Largest message of protocol buffers."""


def opened(
    source: Model | ModelFile, pools: Sequence[Pool], mappings: Mappings, loader: Loader
) -> Loaded:
    """Load a checked source; `pools` are those it names, in its order.

    Raises:
        DriverError: With its status.
        TightshipError: The model is not valid, or cannot be run.
    """
    if isinstance(source, Model):
        return operand_model(source, pools, mappings, loader)
    if source.file_format == FileFormat.OPERANDS:
        return operand_file(source, pools, mappings, loader)
    graph: Callable[[], Graph] | None = None
    if source.file_format == FileFormat.PREPARED:
        _check_prepared(source, pools[0])
        model = loader.prepared(pools[0].handle)
    else:
        file = _onnx(source, pools, mappings)
        if leaves_lengths_open(file):
            return open_onnx(file, loader)
        graph = partial(file.graph, None)
        model = loader.model(graph())
    try:
        return replace(loaded(model), graph=graph)
    except DriverError:
        model.close()
        raise


def _onnx(source: ModelFile, pools: Sequence[Pool], mappings: Mappings) -> OnnxFile:
    """Open an ONNX model in place if its bytes cannot change, else a copy."""
    if source.length_bytes > ONNX_BYTES_MAX:
        raise failure(
            f"An ONNX model has {source.length_bytes} bytes, more than {ONNX_BYTES_MAX}. Put its "
            "weights into external data."
        )
    data = steady_bytes(mappings, pools[0], source.offset_bytes, source.length_bytes)
    files = {
        each.name: steady_file(mappings, pool)
        for each, pool in zip(source.externals, pools[1:], strict=True)
    }
    if isinstance(source, NamedFile) and source.name:
        return open_bytes(data, files, Path(printable(source.name)))
    return open_bytes(data, files, path_of(pools[0]))


def _check_prepared(source: ModelFile, pool: Pool) -> None:
    if not is_steady(pool):
        raise failure(
            "The file of a prepared model must be sealed: F_SEAL_SHRINK and F_SEAL_WRITE."
        )
    whole = os.fstat(pool.handle).st_size
    if source.offset_bytes or pool.extent.offset_bytes or source.length_bytes != whole:
        raise failure("A prepared model must be a whole file, not a part of one.")
