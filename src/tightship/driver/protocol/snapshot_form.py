"""Encoding of a `Snapshot`, which the driver writes to a file of the client."""

from tightship.driver.protocol.forms import NAME
from tightship.driver.protocol.wire import I64, Form, Reader, flag, record, row
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

_PEER = record(Caller, connection=I64, user=I64, pid=I64, name=NAME)
_POOL = record(
    PoolShare,
    number=I64,
    kind=NAME,
    mode=NAME,
    size_bytes=I64,
    is_registered=flag(),
    pss_bytes=I64,
)
_BUFFER = record(BufferShare, token=I64, size_bytes=I64, is_filled=flag())
_MODEL = record(ModelShare, number=I64, name=NAME, weights_bytes=I64, arena_bytes=I64)
_HOLDINGS: Form[Holdings] = record(
    Holdings,
    caller=_PEER,
    is_connected=flag(),
    pools=row(_POOL, _ROW_MAX),
    buffers=row(_BUFFER, _ROW_MAX),
    models=row(_MODEL, _ROW_MAX),
)
_SNAPSHOT: Form[Snapshot] = record(
    Snapshot,
    driver=_HOLDINGS,
    clients=row(_HOLDINGS, _ROW_MAX),
    arena_bytes=I64,
    pss_bytes=I64,
)


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
