"""Executions of one model, one at a time, with memory that stays mapped."""

from collections.abc import Sequence
from dataclasses import dataclass

from tightship.driver.client.call_cache import CallCache, known_of
from tightship.driver.client.open_interface import OpenInterface
from tightship.driver.client.segment import Stage
from tightship.driver.client.session import Released, Session
from tightship.driver.client.staging import Input, Output, Results, Staged, check, results_of, stage
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Executed
from tightship.driver.types.deadline import after
from tightship.public_calls import public_methods


@dataclass(slots=True)
class _Slots:
    """Number of each pool in a burst."""

    by_pool: dict[int, int]

    def of(self, staged: Staged) -> tuple[int, ...]:
        return tuple(
            m.NO_SLOT
            if pool.is_token
            else self.by_pool.setdefault(pool.identifier, len(self.by_pool))
            for pool in staged.request.pools
        )


@public_methods
class Burst(Released):
    """Executions of one model, one at a time."""

    def __init__(self, session: Session, types: OpenInterface, burst: int) -> None:
        super().__init__(session, m.CloseBurst(burst))
        self._types = types
        self._burst = burst
        self._slots = _Slots({})
        self._call_cache = CallCache()
        self._stage = Stage(session)

    def execute(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None = None,
        *,
        timeout_s: float | None = None,
        measure_timing: bool = False,
    ) -> Results:
        """Run and wait; arguments, results and errors as for `RemoteModel.execute`."""
        is_plain = timeout_s is None and not measure_timing
        known = self._call_cache.find(inputs, outputs) if is_plain else None
        if known is None:
            types = self._types.of(inputs, outputs)
            staged = stage(types, inputs, outputs, self._stage.of)
            slots = self._slots.of(staged)
            limit_ns = after(timeout_s)
            call = m.BurstExecute(self._burst, staged.request, slots, measure_timing, limit_ns)
            known = known_of(inputs, outputs, staged, call) if is_plain else None
            if known is None:
                timing = check(self._session.expect(Executed, call))
                return results_of(staged, outputs, timing)
            self._call_cache.add(known)
        check(self._session.repeat(known.call))
        return known.results

    def close(self) -> None:
        """Close the burst. Harmless when repeated."""
        super().close()
        self._stage.close()
