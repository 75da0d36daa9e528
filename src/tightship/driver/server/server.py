"""Server of the native protocol: its threads alternate at the service and run models in parallel.

A thread that receives a call also runs the model and sends the reply, while others receive; so no
run waits for a thread, and long runs delay no other client.
"""

import os
import select
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import SystemRandom

from tightship._core import RunPermits
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.inspection import Facts, Later, look
from tightship.driver.models.model_cache import ModelCache
from tightship.driver.models.named import Named
from tightship.driver.protocol.channel import Packet, close_all
from tightship.driver.protocol.codec import FILES_MAX, MESSAGE_BYTES_MAX, encode_reply
from tightship.driver.protocol.replies import Failed, Launched, Reply
from tightship.driver.server.accepting import FileReserve
from tightship.driver.server.access import NO_ACCESS, Access, own_users
from tightship.driver.server.call_cache import ServerCallCache
from tightship.driver.server.client_log import ClientLog, turned_away
from tightship.driver.server.clock import now_ns, wait_s
from tightship.driver.server.effect_runner import EffectRunner
from tightship.driver.server.features import FEATURES
from tightship.driver.server.listening import PARTS_LEFT, ListeningSocket, caller_of
from tightship.driver.server.peer import IDLE, Peer
from tightship.driver.server.scarcity import Scarcity
from tightship.driver.server.watched_fences import WatchedFences
from tightship.driver.service import effects as fx
from tightship.driver.service.events import (
    Connected,
    Disconnected,
    Event,
    Malformed,
    PermitGranted,
    Received,
    Tick,
)
from tightship.driver.service.service import Service
from tightship.driver.types.settings import Settings
from tightship.driver.types.status import ErrorStatus
from tightship.errors import FormatError

STUCK_S = 0.01
"""Seconds between attempts to accept a client for which no descriptor is left."""
_BELL = os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE


class Server:
    """Driver that listens at a path for its own user, root and the users with access.

    `_lock` guards the service, all peers, the receive buffer and the queue of runs.
    """

    def __init__(
        self,
        path: Path,
        named: Named,
        permits: RunPermits,
        *,
        secret: bytes | None = None,
        access: Access = NO_ACCESS,
        features: frozenset[str] = FEATURES,
    ) -> None:
        """Listen.

        Args:
            path: Path of the socket in an existing folder.
            named: Models that clients may use by name.
            permits: Limit on concurrent runs, and on the threads of a run for a fast answer.
            secret: Key that authenticates compilation caches; None for no caches.
            access: Other users who may connect, and trusted folders.
            features: Features offered, of `FEATURES`.

        Raises:
            InputError: Another driver listens there, or the path is taken.
        """
        self._access, self._log = access, ClientLog()
        settings = Settings(
            model_cache_files=0 if secret is None else 1, data_cache_files=0,
            features=features, operators=own_users(),
        )  # fmt: skip
        self._service = Service(settings, SystemRandom(), access.accounts)
        self._lock = threading.Lock()
        self._room = bytearray(MESSAGE_BYTES_MAX)
        self._peers: dict[int, Peer] = {}
        self._by_file: dict[int, Peer] = {}
        self._count = 0
        self._runs: deque[fx.Run] = deque()
        self._tick_ns: int | None = None
        self._is_stopping = self._is_closing = False
        self._slow = FileProber()
        self._reserve = FileReserve("clients of the driver's socket", parts=PARTS_LEFT)
        self._scarcity = Scarcity()
        cache = None if secret is None else ModelCache(secret, self._slow)
        with ExitStack() as opened:
            self._listening_socket = ListeningSocket(path, is_open=bool(access.users))
            opened.callback(self._listening_socket.shut)
            opened.callback(self._slow.close)
            opened.callback(self._reserve.close)
            opened.callback(self._scarcity.end)
            self._bell = os.eventfd(0, _BELL)
            opened.callback(os.close, self._bell)
            self._effect_runner = EffectRunner(named, cache, permits, self._slow, self._bell)
            opened.callback(self._effect_runner.close)
            self._selector = opened.enter_context(selectors.DefaultSelector())
            self._fences = WatchedFences(self._selector)
            self._selector.register(self._listening_socket, selectors.EVENT_READ)
            self._selector.register(self._effect_runner.workers, selectors.EVENT_READ)
            self._calls = opened.enter_context(select.epoll())
            self._calls.register(self._bell, select.EPOLLIN)
            polling = min(permits.count, len(os.sched_getaffinity(0)) - 1)
            self._call_cache = ServerCallCache(self._calls.fileno(), permits, polling)
            self._opened = opened.pop_all()
        self._threads = 2 * permits.count + 1 + polling

    def stop(self) -> None:
        """End `serve`; may be called from any thread and from a signal handler."""
        if not self._is_stopping:
            self._is_stopping = True
            self._effect_runner.workers.wake()

    def serve(self) -> None:
        """Serve until `stop` is called, then end current runs and close everything."""
        with ThreadPoolExecutor(self._threads, "tightship-call") as threads, ExitStack() as parting:
            parting.callback(self._shut, self._hang_up)
            polling = [threads.submit(self._attend) for _ in range(self._threads)]
            for each in polling:
                each.add_done_callback(lambda done: self.stop() if done.exception() else None)
            while not self._is_stopping:
                try:
                    self._look_around()
                except MemoryError:  # what was not looked at is, once there may be some
                    time.sleep(STUCK_S)
                    self._effect_runner.workers.wake()
            parting.pop_all()
            self._close(polling)

    def _look_around(self) -> None:
        """Handle new clients, fences, finished jobs and due times."""
        with self._lock:
            self._tick_ns = self._service.next_ns()
            seconds = wait_s(self._tick_ns)
        for key, _ in self._selector.select(seconds):
            with self._lock:
                self._notice(key)
        with self._lock:
            if wait_s(self._service.next_ns()) == 0:
                self._happen(Tick())
            self._pass_on()
        if self._listening_socket.is_stuck:
            time.sleep(STUCK_S)

    def _notice(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._listening_socket:
            self._accept()
        elif key.fileobj is self._effect_runner.workers:
            for event in self._effect_runner.workers.events():
                self._happen(event)
        elif (changed := self._fences.changed(key.fd)) is not None:
            self._happen(changed)

    def _accept(self) -> None:
        accepted = self._listening_socket.admit(len(self._peers), self._make_room)
        if accepted is None or not self._scarcity.admits(accepted):
            return
        caller = caller_of(accepted, self._count + 1)
        if not self._access.admits(caller.user):
            turned_away(caller)
            accepted.close()
            return
        if not self._service.has_room(caller.user):
            self._make_room(caller.user)
        self._count += 1
        peer = Peer(self._count, accepted, caller.user)
        self._peers[peer.number] = self._by_file[peer.file] = peer
        self._call_cache.open(peer.file)
        self._log.connected(caller)
        self._happen(Connected(caller))

    def _make_room(self, user: int | None = None) -> bool:
        """End a connection that holds nothing, a user's or of all; whether there was one."""
        idle = map(self._peers.__getitem__, self._service.idle(now_ns(), user))
        if peer := next((each for each in idle if each.is_silent), None):
            self._answer(peer.number, 0, IDLE)
            self._disconnect(peer)
        return peer is not None

    def _attend(self) -> None:
        while not self._is_closing:
            file, mask, unsent = self._call_cache.next()
            try:
                if file == self._bell:
                    self._answer_bell()
                else:
                    self._exchange(file, mask, unsent)
            except MemoryError:
                self._part_from(file)

    def _part_from(self, file: int) -> None:
        """End the connection whose call found no memory, which releases what it holds."""
        with self._lock, suppress(MemoryError):
            if (peer := self._by_file.get(file)) is not None:
                self._disconnect(peer)

    def _answer_bell(self) -> None:
        """Run what other threads have passed on; a closing server leaves the bell ringing."""
        if not self._is_closing:
            with suppress(BlockingIOError):
                os.eventfd_read(self._bell)
        with self._lock:
            run = self._next_run()
        self._run(run)

    def _exchange(self, file: int, mask: int, unsent: bytes) -> None:
        """Take a call and answer it; the client's socket is not watched meanwhile."""
        with self._lock:
            peer = self._by_file.get(file)
            if peer is None:
                return
            if unsent:
                self._send(peer, unsent)
            if mask & select.EPOLLOUT:
                peer.flush()
            if mask & ~select.EPOLLOUT:
                self._take(peer)
            run = self._next_run()
            if peer.number in self._peers:
                self._call_cache.watch(peer.file, peer.wanted)
        self._run(run)

    def _take(self, peer: Peer) -> None:
        files_max = 0 if self._slow.is_full else FILES_MAX
        try:
            packet = peer.take(self._slow.close_all, files_max=files_max, room=self._room)
        except BlockingIOError:
            return
        except FormatError as error:
            self._happen(Malformed(peer.number, 0, str(error)))
            return
        if packet is None:
            self._disconnect(peer)
            return
        held = self._service.file_count
        if packet.files and not self._reserve.admits(packet.files, held(peer.number)):
            self._slow.close_all(packet.files)
            self._happen(peer.without_files(packet))
            return
        tell = partial(self._take_later, peer, packet)
        peer.is_held = True
        facts = look(packet.files, self._access.files, self._slow, tell)
        if facts is not Later.LATER:
            self._hear(peer, packet, facts)

    def _take_later(self, peer: Peer, packet: Packet, facts: Facts | None) -> None:
        """Continue a call whose files had to be awaited, in a thread that inspects files."""
        with self._lock, ExitStack() as failing:
            failing.callback(self.stop)
            if peer.number in self._peers:
                self._hear(peer, packet, facts)
                self._call_cache.watch_for(peer.file, peer.wanted)
                self._pass_on()
            elif facts is not None:
                self._slow.close_all(packet.files)
            failing.pop_all()

    def _hear(self, peer: Peer, packet: Packet, facts: Facts | None) -> None:
        peer.is_held = False
        self._happen(self._scarcity.admitted(peer.event(packet, facts)))
        next_ns = self._service.next_ns()
        if next_ns is not None and (self._tick_ns is None or next_ns < self._tick_ns):
            self._tick_ns = next_ns
            self._effect_runner.workers.wake()

    def _next_run(self) -> fx.Run | None:
        """Return a run for this thread; signal the bell for the others."""
        while (execution := self._effect_runner.next_permit()) is not None:
            self._happen(PermitGranted(execution))
        run = self._runs.popleft() if self._runs else None
        self._pass_on()
        return run

    def _pass_on(self) -> None:
        if self._runs:
            os.eventfd_write(self._bell, len(self._runs))

    def _run(self, run: fx.Run | None) -> None:
        while run is not None:
            finished = self._effect_runner.run(run)
            with self._lock:
                self._happen(finished)  # may still stop the run, if its deadline is just now
                self._effect_runner.forget(finished)
                run = self._next_run()

    def _happen(self, event: Event) -> None:
        client = event.connection if isinstance(event, Received) else 0
        effects = self._service.handle(event, now_ns())
        for effect in effects:
            self._carry_out(effect, client)
        for effect in effects:
            if isinstance(effect, fx.AwaitPermit):
                user = self._peers[effect.connection].user
                if self._effect_runner.await_permit(effect, user):
                    self._happen(PermitGranted(effect.execution))

    def _carry_out(self, effect: fx.Effect, client: int) -> None:
        match effect:
            case fx.Send():
                self._answer(effect.connection, effect.number, effect.reply)
            case fx.Run():
                self._effect_runner.begin(effect)
                self._runs.append(effect)
            case fx.CacheCall():
                self._repeat(effect)
            case fx.ForgetCalls() | fx.PauseCalls() | fx.ResumeCalls() | fx.AttendRing():
                if (peer := self._peers.get(effect.connection)) is not None:
                    self._call_cache.carry_out(peer.file, effect)
            case fx.CloseConnection():
                reply = Failed(ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, effect.message)
                self._answer(effect.connection, 0, reply)
                self._disconnect(self._peers[effect.connection])
            case fx.CloseFile():
                self._fences.forget(effect.handle)
                self._slow.close_all((effect.handle,))
            case fx.WatchFence():
                self._fences.watch(effect.handle)
            case _:
                self._effect_runner.carry_out(effect, client)

    def _repeat(self, effect: fx.CacheCall) -> None:
        peer = self._peers.get(effect.connection)
        run = None if peer is None else self._effect_runner.often(effect.run)
        if peer is not None and run is not None and not peer.is_behind:
            model = effect.run.model
            names = self._effect_runner.names(model, peer.number, peer.user)
            self._call_cache.remember(
                peer.file, effect, run, self._effect_runner.metrics(model), names
            )

    def _answer(self, connection: int, number: int, reply: Reply) -> None:
        files: tuple[int, ...] = ()
        if isinstance(reply, Launched):
            reply, files = self._effect_runner.with_fence(reply)
        peer = self._peers.get(connection)
        if peer is None:
            close_all(files)
            return
        if isinstance(reply, Failed):
            self._log.refused(connection, reply)
        self._send(peer, encode_reply(reply, number), files)

    def _send(self, peer: Peer, data: bytes, files: tuple[int, ...] = ()) -> None:
        peer.answer(data, files)
        if peer.is_behind:  # repeats would overtake these replies
            self._call_cache.forget(peer.file, 0)
            self._call_cache.watch_for(peer.file, peer.wanted)

    def _disconnect(self, peer: Peer) -> None:
        self._log.gone(peer.number, held_count=self._service.ledger.held_count(peer.number))
        self._hang_up(peer)
        self._happen(Disconnected(peer.number))

    def _hang_up(self, peer: Peer) -> None:
        self._call_cache.close(peer.file)
        del self._peers[peer.number], self._by_file[peer.file]
        peer.close()

    def _shut(self, part_from: Callable[[Peer], None]) -> None:
        """Stop listening, disconnect every client and release the threads."""
        self._is_closing = True
        os.eventfd_write(self._bell, 1)  # first, because `part_from` may fail
        with self._lock:
            self._selector.unregister(self._listening_socket)
            self._listening_socket.shut()
            for peer in list(self._peers.values()):
                part_from(peer)

    def _close(self, polling: "list[Future[None]]") -> None:
        self._shut(self._disconnect)
        for each in polling:
            each.result()
        workers, ledger = self._effect_runner.workers, self._service.ledger
        while ledger.waiting:
            self._selector.select()
            for event in workers.events():
                self._happen(event)
        for event in workers.finish():
            self._happen(event)
        self._opened.close()
