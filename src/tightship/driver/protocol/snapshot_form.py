"""Encoding of a `Snapshot`, which the driver writes to a file of the client."""

from tightship.driver.protocol.forms import NAME
from tightship.driver.protocol.wire import Form, Reader, record, row
from tightship.driver.types.snapshot import (
    BufferShare,
    Caller,
    Holdings,
    ModelShare,
    PoolShare,
    Snapshot,
)
from tightship.errors import FormatError

_ROW_MAX = 1 << 20

record(Caller, name=NAME)
_HOLDINGS: Form[Holdings] = record(
    Holdings,
    pools=row(record(PoolShare, kind=NAME, mode=NAME), _ROW_MAX),
    buffers=row(record(BufferShare), _ROW_MAX),
    models=row(record(ModelShare, name=NAME), _ROW_MAX),
)
_SNAPSHOT: Form[Snapshot] = record(Snapshot, clients=row(_HOLDINGS, _ROW_MAX))


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Encode a snapshot."""
    out = bytearray()
    _SNAPSHOT.write(snapshot, out)
    return bytes(out)


def decode_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot.

    Raises:
        FormatError: The bytes are not a valid snapshot.
    """
    reader = Reader(data)
    snapshot = _SNAPSHOT.read(reader)
    if reader.position != len(data):
        raise FormatError(f"{len(data) - reader.position} bytes are left after a snapshot.")
    return snapshot
