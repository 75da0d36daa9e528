"""Reads memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`) as traces.

A snapshot is a pickle. It is read without loading any class or calling any function: values other
than dictionaries, lists, tuples, numbers and strings are refused.
"""

import io
import pickle
from pathlib import Path
from typing import NoReturn

from tightship.errors import FormatError
from tightship.public_calls import public_call
from tightship.trace.events import INT64_MAX, Event, Trace

COMES, GOES = "alloc", "free_completed"


class _PlainValues(pickle.Unpickler):
    """Unpickler that refuses every class and function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise FormatError(f"it names `{module}.{name}`; a snapshot has plain values only")


@public_call
def read_snapshot(path: Path) -> Trace:
    """Read the trace of the device that has the most events.

    Blocks that are freed without an allocation existed before the recording began, and are left
    out.

    Raises:
        FormatError: The file is not a pickle, names a class or a function, has no trace of any
            device, or has an event without address and size, or a block that is allocated twice.
        OSError: The file cannot be read.
    """
    snapshot = _load(path)
    traces = snapshot.get("device_traces") if isinstance(snapshot, dict) else None
    if not isinstance(traces, list) or not all(isinstance(trace, list) for trace in traces):
        raise FormatError(f"`{path}` has no `device_traces`: record the history of allocations.")
    longest: list[object] = max(traces, key=len, default=[])
    live: set[int] = set()
    events = []
    for index, raw in enumerate(longest):
        where = f"`{path}`, event {index}"
        if not isinstance(raw, dict):
            raise FormatError(f"{where} is not a dictionary.")
        if raw.get("action") not in (COMES, GOES):
            continue
        comes = raw["action"] == COMES
        address = _number(where, raw, "addr")
        size = _number(where, raw, "size")
        if comes and address in live:
            raise FormatError(f"{where}: block {address:#x} is allocated twice.")
        if comes:
            live.add(address)
        elif address in live:
            live.remove(address)
        else:
            continue
        events.append(Event(address, size if comes else 0, is_allocation=comes))
    return Trace(tuple(events))


def _load(path: Path) -> object:
    try:
        return _PlainValues(io.BytesIO(path.read_bytes())).load()
    except FormatError as error:
        raise FormatError(f"`{path}` is refused: {error}.") from None
    except (
        *(pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError),
        *(TypeError, OverflowError, MemoryError),
    ) as error:
        raise FormatError(f"`{path}` is not a pickle: {error}.") from error


def _number(where: str, raw: dict[str, object], field: str) -> int:
    value = raw.get(field)
    if type(value) is not int or not 0 <= value <= INT64_MAX:
        raise FormatError(f"{where}: `{field}` is not an integer in [0, {INT64_MAX}].")
    return value
