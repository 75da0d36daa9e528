"""Calls through the stages of a pipeline: bounded, failed if a stage is lost, and gone on with."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from tightship.cluster.replica import Array
from tightship.cluster.stage_graph import StageGraph
from tightship.cluster.stage_transport import Channels, Objects, Transport
from tightship.errors import DeadlineError, InputError, TightshipError

RESTART_S = 60.0
"""Seconds until a stage that ended counts as lost for good."""
ASK_S = 1.0
CLOSE_S = 10.0
"""Seconds to wait for what may not answer when a pipeline is closed."""

Results = dict[str, Array]


class StageLostError(TightshipError):
    """A stage ended before a call through it did."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Actors of the stages of a model.

    Attributes:
        graph: The stages and what flows between them.
        actors: Handles of their actors.
        in_flight: Most calls under way at once.
        is_here: Whether all of them are on the node of this process.
    """

    graph: StageGraph
    actors: Sequence[Any]
    in_flight: int
    is_here: bool

    @property
    def transport(self) -> str:
        """Way of values between the stages."""
        return "channels" if self.is_here else "objects"

    def opened(self) -> Transport:
        """Open the ways between the stages."""
        if self.is_here:
            return Channels(self.graph, self.actors, self.in_flight)
        return Objects(self.graph, self.actors)

    def load(self, within_s: float = 0.0) -> None:
        """Wait until all stages are loaded, those that Ray starts again too.

        Raises:
            InputError, FormatError, UnusableCacheError: A stage cannot be loaded.
            StageLostError: One does not answer within some seconds after it ended.
        """
        import ray

        end = time.monotonic() + within_s
        for index, actor in enumerate(self.actors):
            while True:
                try:
                    ray.get(actor.load.remote())
                    break
                except ray.exceptions.RayActorError as error:
                    if time.monotonic() > end:
                        name = self.graph.stages[index].plan.model
                        raise StageLostError(f"`{name}` ended: {_shown(error)}") from None
                    time.sleep(ASK_S)
                except ray.exceptions.RayTaskError as error:
                    raise _cause(error) from None

    def described(self, error: Exception) -> StageLostError:
        """Word the error of a call during which a stage ended."""
        lost = getattr(error, "actor_id", None)
        names = [
            stage.plan.model
            for stage, actor in zip(self.graph.stages, self.actors, strict=True)
            if actor._actor_id.hex() == lost
        ]
        name = f"`{names[0]}`" if names else f"A stage of `{self.graph.stages[0].plan.model}`"
        return StageLostError(f"{name} ended during the call: {_shown(error)}")


class CallsInFlight:
    """Calls under way, whose results one thread collects in order."""

    def __init__(self, stages: Stages) -> None:
        """Wait for the stages, and open the ways between them; errors as `Stages.load`."""
        self.stages = stages
        stages.load()
        self._transport = stages.opened()
        self._under_way: deque[tuple[Sequence[Any], Future[Results]]] = deque()
        self._changed = threading.Condition()
        self._is_broken = False
        self._end: TightshipError | None = None
        self._thread = threading.Thread(target=self._collect, name="calls", daemon=True)
        self._thread.start()

    def start(self, inputs: Mapping[str, Array], timeout_s: float | None) -> "Future[Results]":
        """Start a call as soon as fewer than the most are in flight.

        Raises:
            DeadlineError: None could be started before the timeout.
            InputError: A name is missing or unknown, or the pipeline is closed.
            StageLostError: A stage that ended was not started again in time.
        """
        import ray

        parts = self.stages.graph.divided(inputs)
        with self._changed:
            while True:
                if not self._changed.wait_for(self._has_place, timeout_s):
                    raise DeadlineError(f"No call could be started within {timeout_s} s.")
                if self._end is not None:
                    raise self._end
                try:
                    references = self._transport.send(parts)
                except ray.exceptions.RayError:  # a stage ended before this call
                    self._is_broken = True
                    self._changed.notify_all()
                    continue
                result: Future[Results] = Future()
                self._under_way.append((references, result))
                self._changed.notify_all()
                return result

    def close(self) -> None:
        """Close the ways between the stages; calls under way fail, or end with their stages.

        A stage that does not answer is left to be ended.
        """
        with self._changed:
            self._end = self._end or InputError("The pipeline is closed; start another.")
            self._changed.notify_all()
        closing = threading.Thread(target=self._transport.close, daemon=True)
        closing.start()
        closing.join(CLOSE_S)

    def join(self) -> None:
        """Wait until all calls have ended, after the stages have."""
        self._thread.join(CLOSE_S)

    def _has_place(self) -> bool:
        has_place = not self._is_broken and len(self._under_way) < self.stages.in_flight
        return self._end is not None or has_place

    def _collect(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._under_way or self._is_broken or self._end)
                first = self._under_way[0] if self._under_way else None
                if first is None and self._end is not None:
                    return
            if first is None:
                self._go_on()
                continue
            is_lost = self._finish(*first)
            del first  # it has references to buffers
            with self._changed:
                self._under_way.popleft()
                self._is_broken |= is_lost
                self._changed.notify_all()

    def _finish(self, references: Sequence[Any], result: "Future[Results]") -> bool:
        """Wait for a call, and return whether a stage ended meanwhile."""
        import ray

        try:
            parts = self._transport.receive(references)
        except Exception as error:  # noqa: BLE001  the caller gets it
            cause = _cause(error) if isinstance(error, ray.exceptions.RayTaskError) else error
            is_lost = cause is error or isinstance(cause, ray.exceptions.RayError)
            result.set_exception(self.stages.described(cause) if is_lost else cause)
            return is_lost
        result.set_result({name: array for part in parts for name, array in part.items()})
        return False

    def _go_on(self) -> None:
        """Wait for the stages that Ray starts again, and open the ways between them."""
        self._transport.close()
        try:
            self.stages.load(RESTART_S)
            opened = self.stages.opened()
        except Exception as error:  # noqa: BLE001  all further calls get it
            end = error if isinstance(error, TightshipError) else StageLostError(_shown(error))
            with self._changed:
                self._end = self._end or end
                self._changed.notify_all()
            return
        with self._changed:
            self._transport, self._is_broken = opened, False
            is_closed = self._end is not None
            self._changed.notify_all()
        if is_closed:
            opened.close()


def _cause(error: Exception) -> Exception:
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error


def _shown(error: Exception) -> str:
    return str(error).partition("\n")[0]
