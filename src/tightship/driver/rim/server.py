"""A driver process: one thread owns the service and talks to clients."""

import errno
import os
import selectors
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

from tightship.driver import effects as fx
from tightship.driver.events import (
    Connected,
    Disconnected,
    Event,
    FenceChanged,
    Malformed,
    Received,
    Tick,
)
from tightship.driver.protocol.channel import Packet, close_all, receive, send
from tightship.driver.protocol.codec import decode_call, encode_reply, number_of
from tightship.driver.protocol.replies import Failed, Launched, Reply
from tightship.driver.rim.access import Access, own_users
from tightship.driver.rim.carrier import Carrier
from tightship.driver.rim.client_log import ClientLog, turned_away
from tightship.driver.rim.descriptor import describe, fence_state
from tightship.driver.rim.listening import caller_of, listen
from tightship.driver.rim.model_cache import ModelCache
from tightship.driver.rim.named import Named
from tightship.driver.rim.trusted import Trusted
from tightship.driver.rules.attachment import FenceState
from tightship.driver.rules.status import ErrorStatus
from tightship.driver.service import Service
from tightship.driver.settings import Settings
from tightship.errors import FormatError

NO_ACCESS = Access()
FEATURES = frozenset({"hardware_buffer", "isolated", "memory_domains"})
"""What a client may do without."""
UNSENT_MAX = 1024
"""Answers that a client may leave unread beyond what its socket holds."""


@dataclass(slots=True, eq=False)
class Peer:
    """A client's connection, and the answers that it has not taken."""

    number: int
    socket: socket.socket
    unsent: deque[tuple[bytes, tuple[int, ...]]] = field(default_factory=deque)


class Server:
    """A driver that listens at a path; its own user, root, and those with access may connect."""

    def __init__(
        self,
        path: Path,
        named: Named,
        *,
        threads: int = 1,
        secret: bytes | None = None,
        access: Access = NO_ACCESS,
        features: frozenset[str] = FEATURES,
    ) -> None:
        """Listen.

        Args:
            path: Of the socket; its folder exists.
            named: Models that clients may use by name.
            threads: Executions that run at once.
            secret: With which compilation caches are authenticated; None for no cache.
            access: Who else may connect, and files to believe in.
            features: Of `FEATURES`, what it offers.

        Raises:
            InputError: Another driver listens there, or something else has that path.
        """
        self._path = path
        self._access, self._log = access, ClientLog()
        self._listener = listen(path, is_open=bool(access.users))
        settings = Settings(
            model_cache_files=0 if secret is None else 1,
            data_cache_files=0,
            runs_max=threads,
            features=features,
            operators=own_users(),
        )
        self._service = Service(settings, SystemRandom())
        cache = None if secret is None else ModelCache(secret)
        self._carrier = Carrier(named, threads, cache)
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, Peer] = {}
        self._count = 0
        self._watched: set[int] = set()
        self._is_stopping = False
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._carrier.workers, selectors.EVENT_READ)

    def stop(self) -> None:
        """Have `serve` return; may be called from any thread and from a signal handler."""
        self._is_stopping = True
        self._carrier.workers.wake()

    def serve(self) -> None:
        """Serve until `stop` is called, then end what runs and close everything."""
        while not self._is_stopping:
            for key, mask in self._selector.select(self._wait_s()):
                self._ready(key, mask)
            if self._wait_s() == 0:
                self._happen(Tick())
        self._close()

    def _wait_s(self) -> float | None:
        next_ns = self._service.next_ns()
        return None if next_ns is None else max(0.0, (next_ns - _now_ns()) / 1e9)

    def _ready(self, key: selectors.SelectorKey, mask: int) -> None:
        if key.fileobj is self._listener:
            self._accept()
        elif key.fileobj is self._carrier.workers:
            for event in self._carrier.workers.events():
                self._finished(event)
        elif isinstance(key.data, Peer):
            self._exchange(key.data, mask)
        elif key.fd in self._watched:
            self._unwatch(key.fd)
            is_ok = fence_state(key.fd) is FenceState.SIGNALLED
            self._happen(FenceChanged(key.fd, is_ok))

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away()
            return
        caller = caller_of(accepted, self._count + 1)
        if not self._access.admits(caller.user):
            turned_away(caller)
            accepted.close()
            return
        accepted.settimeout(0)
        self._count += 1
        peer = self._peers[self._count] = Peer(self._count, accepted)
        self._selector.register(accepted, selectors.EVENT_READ, peer)
        self._log.connected(caller)
        self._happen(Connected(caller))

    def _turn_away(self) -> None:
        """Hang up on a client for which no descriptor is left; it would be ready for ever."""
        os.close(self._spare)
        with suppress(OSError):
            self._listener.accept()[0].close()
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _exchange(self, peer: Peer, mask: int) -> None:
        if peer.number not in self._peers:
            return
        if mask & selectors.EVENT_WRITE:
            self._flush(peer)
        if not mask & selectors.EVENT_READ:
            return
        try:
            packet = receive(peer.socket)
        except BlockingIOError:
            return
        except FormatError as error:
            self._happen(Malformed(peer.number, 0, str(error)))
            return
        if packet is None:
            self._disconnect(peer)
            return
        self._happen(_event_of(peer.number, packet, self._access.files))

    def _happen(self, event: Event) -> None:
        for effect in self._service.handle(event, _now_ns()):
            match effect:
                case fx.Send():
                    self._answer(effect.connection, effect.number, effect.reply)
                case fx.CloseConnection():
                    reply = Failed(ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, effect.message)
                    self._answer(effect.connection, 0, reply)
                    self._hang_up(self._peers[effect.connection])
                case fx.CloseFile():
                    self._unwatch(effect.handle)
                    os.close(effect.handle)
                case fx.WatchFence():
                    self._watched.add(effect.handle)
                    self._selector.register(effect.handle, selectors.EVENT_READ)
                case _:
                    self._carrier.carry_out(effect)

    def _finished(self, event: Event) -> None:
        self._carrier.note(event)
        self._happen(event)

    def _unwatch(self, file: int) -> None:
        if file in self._watched:
            self._watched.remove(file)
            self._selector.unregister(file)

    def _answer(self, connection: int, number: int, reply: Reply) -> None:
        files: tuple[int, ...] = ()
        if isinstance(reply, Launched):
            try:
                files = (self._carrier.new_fence(reply.execution),)
            except OSError:
                reply = Failed(
                    ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, "No descriptor is left for a fence."
                )
        peer = self._peers.get(connection)
        if peer is None:
            close_all(files)
            return
        if isinstance(reply, Failed):
            self._log.refused(connection, reply)
        peer.unsent.append((encode_reply(reply, number), files))
        self._flush(peer)

    def _flush(self, peer: Peer) -> None:
        """Send what the client takes; one that reads nothing for long is shut out."""
        while peer.unsent:
            data, files = peer.unsent[0]
            try:
                send(peer.socket, data, files)
            except BlockingIOError:
                break
            except OSError:
                peer.socket.shutdown(socket.SHUT_RDWR)
                break
            peer.unsent.popleft()
            close_all(files)
        if len(peer.unsent) > UNSENT_MAX:
            peer.socket.shutdown(socket.SHUT_RDWR)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.unsent else 0)
        if self._selector.get_key(peer.socket).events != wanted:
            self._selector.modify(peer.socket, wanted, peer)

    def _disconnect(self, peer: Peer) -> None:
        self._log.gone(peer.number, held_count=self._service.ledger.held_count(peer.number))
        self._hang_up(peer)
        self._happen(Disconnected(peer.number))

    def _hang_up(self, peer: Peer) -> None:
        del self._peers[peer.number]
        self._selector.unregister(peer.socket)
        peer.socket.close()
        for _, files in peer.unsent:
            close_all(files)

    def _close(self) -> None:
        self._selector.unregister(self._listener)
        self._listener.close()
        with suppress(FileNotFoundError):
            self._path.unlink()
        for peer in list(self._peers.values()):
            self._disconnect(peer)
        workers, ledger = self._carrier.workers, self._service.ledger
        while ledger.executions or ledger.waiting:
            self._selector.select()
            for event in workers.events():
                self._finished(event)
        for event in workers.finish():
            self._finished(event)
        self._selector.close()
        workers.close()
        self._carrier.close()
        os.close(self._spare)


def _event_of(number: int, packet: Packet, trusted: Trusted) -> Event:
    files = tuple(describe(file, trusted) for file in packet.files)
    try:
        frame = decode_call(packet.data)
    except FormatError as error:
        return Malformed(number, number_of(packet.data), str(error), files)
    if frame.file_count != len(files):
        message = f"{len(files)} files came beside a message of {frame.file_count}."
        return Malformed(number, frame.number, message, files)
    return Received(number, frame.number, frame.message, files)


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
