"""Calls that are answered without Python when they come again, as the service allows."""

from dataclasses import dataclass

from tightship._core import NativeContext, Repeats, StopFlag
from tightship.bound_run import BoundRun
from tightship.driver.effects import MayRepeat
from tightship.driver.protocol.codec import encode, encode_reply


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a run of the native core uses."""

    session: int
    run: BoundRun
    context: NativeContext
    stop: StopFlag


class Repeating:
    """What the native core answers, by connection; `next` may be waited for by many threads."""

    def __init__(self, calls: int) -> None:
        """`calls` is an epoll descriptor; its sockets are watched for one event at a time."""
        self._native = Repeats(calls)
        self._kept: dict[int, dict[bytes, _Kept]] = {}
        self.next = self._native.next
        self.set_room = self._native.set_room

    def remember(self, file: int, may: MayRepeat, run: BoundRun) -> None:
        """Answer a call on a connection from now on, if its run needs neither arena nor Python."""
        kept = self._kept.setdefault(file, {})
        call = encode(may.call, 0)
        alone = None if call in kept else run.alone()
        if alone is None:
            return
        context, steps = alone
        made = kept[call] = _Kept(may.session, run, context, StopFlag())
        both = call, encode_reply(may.reply, 0)
        self._native.remember(file, may.session, both, context, steps, made.stop)

    def forget(self, file: int, session: int) -> None:
        """Answer no call of a session any more, or of any if it is 0; none runs."""
        kept = self._kept.get(file, {})
        gone = [call for call, each in kept.items() if session in {0, each.session}]
        for call in gone:
            kept[call].stop.set()
        self._native.forget(file, session)
        for call in gone:
            del kept[call]
        if not kept:
            self._kept.pop(file, None)
