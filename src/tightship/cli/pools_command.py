"""Implements `tightship pools`: the memory of a driver by owner."""

import argparse
import pwd
from collections.abc import Iterator
from dataclasses import asdict

from tightship.cli.output import show, show_json
from tightship.driver.client.client import Client
from tightship.driver.types.snapshot import Holdings, Snapshot
from tightship.quantity import format_bytes
from tightship.view.table import Column, table

_OWNERS = (
    Column("client"),
    Column("pid", number=True),
    Column("user"),
    Column("program"),
    Column("pools", number=True),
    Column("resident", number=True),
    Column("buffers", number=True),
    Column("weights", number=True),
    Column("total", number=True),
)
_THINGS = (
    Column("client"),
    Column("what"),
    Column("state"),
    Column("size", number=True),
    Column("resident", number=True),
)


def run(options: argparse.Namespace) -> int:
    """Query a driver and print its holdings."""
    with Client(options.socket) as client:
        snapshot = client.inspect()
    if options.json:
        show_json(in_json(snapshot))
    else:
        show("\n".join(lines(snapshot)) + "\n")
    return 0


def in_json(snapshot: Snapshot) -> dict[str, object]:
    """Return a snapshot as JSON values, with the sums of each owner; amounts in bytes."""
    return {
        "pss_bytes": snapshot.pss_bytes,
        "arena_bytes": snapshot.arena_bytes,
        "driver": _owner_in_json(snapshot.driver),
        "clients": [_owner_in_json(client) for client in snapshot.clients],
    }


def _owner_in_json(owner: Holdings) -> dict[str, object]:
    sums = {
        "pss_bytes": owner.pss_bytes,
        "buffer_bytes": owner.buffer_bytes,
        "weights_bytes": owner.weights_bytes,
        "total_bytes": owner.total_bytes,
    }
    return {"user_name": user_name(owner.caller.user), **sums, **asdict(owner)}


def lines(snapshot: Snapshot) -> Iterator[str]:
    """Describe a snapshot: the driver, the sums of each owner, and each object."""
    driver = snapshot.driver.caller
    yield (
        f"driver (pid {driver.pid}, {user_name(driver.user)}): {format_bytes(snapshot.pss_bytes)} "
        f"resident, of it {format_bytes(snapshot.arena_bytes)} of arenas for all clients"
    )
    owners = [snapshot.driver, *snapshot.clients]
    yield ""
    yield from table(_OWNERS, [_owner_row(owner) for owner in owners], indent=2)
    things = [row for owner in owners for row in _thing_rows(owner)]
    if things:
        yield ""
        yield from table(_THINGS, things, indent=2)


def _owner_row(owner: Holdings) -> list[str]:
    caller = owner.caller
    sizes = (owner.pss_bytes, owner.buffer_bytes, owner.weights_bytes, owner.total_bytes)
    return [
        _label(owner),
        str(caller.pid) if caller.pid else "?",
        user_name(caller.user),
        caller.name,
        str(len(owner.pools)),
        *map(format_bytes, sizes),
    ]


def _thing_rows(owner: Holdings) -> Iterator[list[str]]:
    label = _label(owner)
    for pool in owner.pools:
        state = pool.mode if pool.is_registered else f"{pool.mode}, in use only"
        size, resident = format_bytes(pool.size_bytes), format_bytes(pool.pss_bytes)
        yield [label, f"pool {pool.kind}", state, size, resident]
    for buffer in owner.buffers:
        size = format_bytes(buffer.size_bytes)
        state = "filled" if buffer.is_filled else "empty"
        yield [label, f"buffer {buffer.token}", state, size, size]
    for model in owner.models:
        state = f"{format_bytes(model.arena_bytes)} of arena in a run"
        size = format_bytes(model.weights_bytes)
        yield [label, f"model {model.name}", state, size, size]


def _label(owner: Holdings) -> str:
    if not owner.caller.connection:
        return "driver"
    return f"{owner.caller.connection}" + ("" if owner.is_connected else " (gone)")


def user_name(user: int) -> str:
    """Return the name of a user, or the number if the user has no name on this system."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
