"""Fast-path connections: the native core answers known requests without Python."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count

from tightship._core import GuardedMapping, LentConnections, NativeContext
from tightship.driver.oip.cached_inference import CachedInference
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.region_files import Window
from tightship.model import Model

REQUEST_BYTES_MAX = 8191
"""Largest request, and largest response, of the fast path."""
KEPT_MAX = 256
"""Known requests, above which the oldest is forgotten."""

Back = Callable[[bool, bytes], None]
"""Takes a connection back: whether the last request was known, and bytes still to be sent."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Everything that a request uses until it is released.

    Attributes:
        context: Native form of a run that needs neither arena nor Python.
        call: Python form of other runs.
    """

    request: bytes
    cached: CachedInference
    context: NativeContext | None
    call: Callable[[], None]
    released: Callable[[], None]
    is_over: threading.Event


class Lending:
    """Known requests and the connections they come on. May be used from any thread.

    A request is forgotten before its model or one of its regions is replaced.
    """

    def __init__(self, endpoint: InferenceEndpoint) -> None:
        self._endpoint = endpoint
        self._native = LentConnections(endpoint.permits)
        self._numbers = count(1)
        self._kept: dict[int, _Kept] = {}
        self._known: dict[bytes, int] = {}
        self._backs: dict[int, Back] = {}
        self._lock = threading.Lock()
        endpoint.regions.on_unregistered = self._forget_region
        endpoint.repository.on_withdrawn.append(self._forget_model)

    def knows(self, request: bytes) -> bool:
        """Whether these bytes are a known request."""
        return request in self._known

    def keep(
        self,
        request: bytes,
        response: bytes,
        cached: CachedInference,
        is_current: Callable[[], bool],
    ) -> None:
        """Answer a request that has been run twice natively, unless it means something else now."""
        regions, again = self._endpoint.regions, cached.again
        if max(len(request), len(response)) > REQUEST_BYTES_MAX or again is None:
            return
        alone = again.alone()
        if not regions.begin_again(cached.windows):
            return
        number = next(self._numbers)
        kept = _Kept(
            request,
            cached,
            alone and alone[0],
            partial(again.run, self._endpoint.stop),
            partial(self._release, number),
            threading.Event(),
        )
        with self._lock:
            oldest = next(iter(self._known.values())) if len(self._known) >= KEPT_MAX else None
            self._kept[number], self._known[request] = kept, number
        self._remember(number, kept, (request, response), alone and alone[1])
        if oldest is not None:
            self._forget([oldest])
        if not is_current():
            self._forget([number])

    def _remember(
        self, number: int, kept: _Kept, exchange: tuple[bytes, bytes], steps: tuple[int, int] | None
    ) -> None:
        mapped = [_mapped(window) for window in kept.cached.windows]
        cached = kept.cached
        model = cached.metrics, cached.bound.served.name
        if kept.context is None or steps is None:
            self._native.remember_call(number, exchange, kept.call, mapped, kept.released, model)
        else:
            run = (kept.context, steps, self._endpoint.stop)
            self._native.remember(number, exchange, run, mapped, kept.released, model)

    def lend(self, file: int, back: Back, account: str = "", client: str = "") -> int:
        """Have the native core answer known requests on a socket; return the number of the loan.

        Its runs alternate like those of a `Caller` of this account and client.

        Raises:
            RuntimeError: The system has no descriptor left.
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
        """End a loan at once; False during a request, after which the connection comes back."""
        is_back = self._native.recall(number)
        if is_back:
            del self._backs[number]
        return is_back

    def idle_since_ns(self, number: int) -> int | None:
        """Return when a loan began or was last used; None during a request or its return."""
        return self._native.idle_since(number)

    def serve(self, deliver: Callable[..., object]) -> None:
        """Answer requests until `close`; connections come back by `deliver(back, ...)`."""
        while (returned := self._native.next()) is not None:
            number, is_known, unsent = returned
            deliver(self._backs.pop(number), is_known, unsent)

    def close(self) -> None:
        """End every `serve`."""
        self._native.close()

    def forget_all(self) -> None:
        """Forget all requests, after every `serve` has ended."""
        self._forget(list(self._kept))

    def _release(self, number: int) -> None:
        """Release what a request uses, after its last run."""
        kept = self._kept.pop(number)
        if self._known.get(kept.request) == number:  # the same bytes may be known anew
            self._known.pop(kept.request, None)
        self._endpoint.regions.end(kept.cached.windows)
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

    def _numbers_of(self, is_meant: Callable[[CachedInference], bool]) -> list[int]:
        with self._lock:
            kept = tuple(self._kept.items())
        return [number for number, each in kept if is_meant(each.cached)]

    def _forget_region(self, name: str | None) -> None:
        self._forget(
            self._numbers_of(
                lambda cached: (
                    name is None or any(each.region.name == name for each in cached.windows)
                )
            )
        )

    def _forget_model(self, model: Model) -> None:
        """Forget a model's requests and wait for their runs."""
        for kept in self._forget(self._numbers_of(lambda cached: cached.model is model)):
            kept.is_over.wait()


def _mapped(window: Window) -> tuple[GuardedMapping, int, int]:
    return window.mapped.guard, window.mapped.file, window.stop
