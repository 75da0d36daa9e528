"""Connections lent to the native core, which answers requests that have come before: no Python."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count

from tightship._core import GuardedMapping, LentConnections, NativeContext
from tightship.driver.oip.face import Face
from tightship.driver.oip.region_files import Window
from tightship.driver.oip.standing import Standing
from tightship.model import Model

REQUEST_BYTES_MAX = 8191
"""Of a request that is answered so, and of its response."""
KEPT_MAX = 256
"""Requests that are known; one more, and the oldest is not."""

Back = Callable[[bool, bytes], None]
"""Takes a connection back: whether what has come was answered, and what is still to be sent."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What a request uses until it is released.

    Attributes:
        context: Of a run that needs neither arena nor Python.
        call: Of any other.
    """

    request: bytes
    standing: Standing
    context: NativeContext | None
    call: Callable[[], None]
    released: Callable[[], None]
    is_over: threading.Event


class Lending:
    """Requests that are known, and connections on which they come. May be used from any thread.

    A request is known no more before its model or one of its regions is another's.
    """

    def __init__(self, face: Face) -> None:
        self._face = face
        self._native = LentConnections(face.turns)
        self._numbers = count(1)
        self._kept: dict[int, _Kept] = {}
        self._known: dict[bytes, int] = {}
        self._backs: dict[int, Back] = {}
        self._lock = threading.Lock()
        face.regions.on_unregistered = self._forget_region
        face.repository.on_withdrawn.append(self._forget_model)

    def knows(self, request: bytes) -> bool:
        """Whether these bytes, all of a request, are answered on connections that are lent."""
        return request in self._known

    def keep(self, request: bytes, response: bytes, standing: Standing) -> None:
        """Answer a request that has been run twice from now on, unless something has changed."""
        regions, again = self._face.regions, standing.again
        if max(len(request), len(response)) > REQUEST_BYTES_MAX or again is None:
            return
        alone = again.alone()
        if not regions.begin_again(standing.windows):
            return
        number = next(self._numbers)
        kept = _Kept(
            request,
            standing,
            alone and alone[0],
            partial(again.run, self._face.stop),
            partial(self._release, number),
            threading.Event(),
        )
        with self._lock:
            oldest = next(iter(self._known.values())) if len(self._known) >= KEPT_MAX else None
            self._kept[number], self._known[request] = kept, number
        self._remember(number, kept, (request, response), alone and alone[1])
        if oldest is not None:
            self._forget([oldest])
        if not self._face.still_has(standing):
            self._forget([number])

    def _remember(
        self, number: int, kept: _Kept, exchange: tuple[bytes, bytes], steps: tuple[int, int] | None
    ) -> None:
        mapped = [_mapped(window) for window in kept.standing.windows]
        standing = kept.standing
        model = standing.tally, standing.bound.name
        if kept.context is None or steps is None:
            self._native.remember_call(number, exchange, kept.call, mapped, kept.released, model)
        else:
            run = (kept.context, steps, self._face.stop)
            self._native.remember(number, exchange, run, mapped, kept.released, model)

    def lend(self, file: int, back: Back, account: str = "", client: str = "") -> int:
        """Have what comes by a socket be answered while it is known; the number of the loan.

        Its runs take turns as those of a `Caller` of this account and client.

        Raises:
            RuntimeError: The system has no file left.
        """
        number = next(self._numbers)
        self._backs[number] = back
        try:
            self._native.lend(number, file, account, client)
        except RuntimeError:
            del self._backs[number]
            raise
        return number

    def recall(self, number: int) -> bool:
        """End a loan at once; False if a request is being answered: the connection comes back."""
        is_back = self._native.recall(number)
        if is_back:
            del self._backs[number]
        return is_back

    def idle_since_ns(self, number: int) -> int | None:
        """When a connection was lent or last answered; None if one is being, or it comes back."""
        return self._native.idle_since(number)

    def serve(self, deliver: Callable[..., object]) -> None:
        """Answer requests until `close`; connections come back by `deliver(back, ...)`."""
        while (returned := self._native.next()) is not None:
            number, is_known, unsent = returned
            deliver(self._backs.pop(number), is_known, unsent)

    def close(self) -> None:
        """Have every `serve` return."""
        self._native.close()

    def forget_all(self) -> None:
        """Know nothing, once nobody serves any more."""
        self._forget(list(self._kept))

    def _release(self, number: int) -> None:
        """Nothing of a request runs, or will."""
        kept = self._kept.pop(number)
        if self._known.get(kept.request) == number:  # another of these bytes was known still
            self._known.pop(kept.request, None)
        self._face.regions.end(kept.standing.windows)
        kept.is_over.set()

    def _forget(self, numbers: list[int]) -> list[_Kept]:
        with self._lock:
            gone = {number: self._kept[number] for number in numbers if number in self._kept}
            for number, kept in gone.items():
                if self._known.get(kept.request) == number:
                    del self._known[kept.request]
        for number in gone:
            self._native.forget(number)
        return list(gone.values())

    def _numbers_of(self, is_meant: Callable[[Standing], bool]) -> list[int]:
        with self._lock:
            kept = tuple(self._kept.items())
        return [number for number, each in kept if is_meant(each.standing)]

    def _forget_region(self, name: str | None) -> None:
        self._forget(
            self._numbers_of(
                lambda standing: (
                    name is None or any(each.region.name == name for each in standing.windows)
                )
            )
        )

    def _forget_model(self, model: Model) -> None:
        """Return once it does not run."""
        for kept in self._forget(self._numbers_of(lambda standing: standing.model is model)):
            kept.is_over.wait()


def _mapped(window: Window) -> tuple[GuardedMapping, int, int]:
    return window.mapped.guard, window.mapped.file, window.stop
