"""Handler of inferences: a quick one is read, run and answered by grpcio's thread of events.

Others are run by a thread of the queue of permits, or by one of a pool: those whose slot, message
or neighbours have to be waited for, and those with large messages.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import grpc

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.grpc.calls import AskedInference, GrpcCalls
from tightship.driver.oip.grpc.early_message import EventThread, receive
from tightship.driver.oip.grpc.late_answer import LateAnswer, Send
from tightship.driver.oip.grpc.slots import CallSlots, OpenCall, Stage
from tightship.driver.oip.grpc.waiting_calls import Waiting, WaitingCalls
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code

INFER = "ModelInfer"
SMALL_BYTES = 64 << 10
"""Largest message that the thread of events decodes and answers."""

GoOn = Callable[[], None]
"""Has a call go on elsewhere."""
Step = Callable[[], GoOn | None]
"""Part of a call, the last one if it returns nothing."""
Context: TypeAlias = grpc.ServicerContext


@dataclass(slots=True)
class _Asking:
    """A call of the method.

    Attributes:
        call: The call.
        context: grpcio's part of it.
        answer: Sends its answer.
        opened: What ends it.
    """

    call: OpenCall
    context: Context
    answer: LateAnswer
    opened: ExitStack

    def received(self, message: bytes | None) -> bytes:
        """Return the message of the call.

        Raises:
            OipError: None came.
            RpcError: The call was cancelled.
        """
        if message is None:
            if not self.context.is_active():
                raise grpc.RpcError
            raise OipError(f"{INFER} takes one message, and none came", Code.UNIMPLEMENTED)
        self.call.enter(Stage.ANSWER)
        return self.call.received(message)


@dataclass(frozen=True, slots=True)
class InferenceHandler:
    """Handler of the method of inferences.

    Attributes:
        calls: Functions that answer.
        opened: Opens a call without a slot, and turns an exception of the block into its status.
        caller: Returns the caller of a call, which leaves when the call is cancelled.
        slots: Slots for open calls.
        queue: Queue of inferences that wait for permits.
        executor: Threads that may wait for anything.
    """

    calls: GrpcCalls
    opened: Callable[[Context], AbstractContextManager[OpenCall]]
    caller: Callable[[OpenCall, Context], Caller]
    slots: CallSlots
    queue: WaitingCalls
    executor: Executor

    def method(self) -> grpc.RpcMethodHandler:
        """Return the handler as grpcio wants it."""
        events = EventThread()

        def handle(messages: Iterator[bytes], context: Context, send: Send) -> None:
            events.hold(context)
            self._begin(messages, context, LateAnswer(context, send, self.executor))

        handle.experimental_non_blocking = True  # type: ignore[attr-defined]
        handle.experimental_thread_pool = events  # type: ignore[attr-defined]
        return grpc.stream_stream_rpc_method_handler(handle)

    def _begin(self, messages: Iterator[bytes], context: Context, answer: LateAnswer) -> None:
        """Open a call, and have it go on once its message has come."""
        with ExitStack() as opened:
            call = opened.enter_context(self.opened(context))
            asking = _Asking(call, context, answer, opened.pop_all())
        has_slot = self.slots.take_free(call)
        if has_slot and receive(messages, partial(self._arrived, asking)):
            return
        self._submit(asking, partial(self._wait, asking, messages, has_slot=has_slot))

    def _arrived(self, asking: _Asking, message: bytes | None) -> None:
        """Go on with a message, in the thread of events."""
        if message is not None and len(message) > SMALL_BYTES:
            self._submit(asking, partial(self._answer, asking, message))
        else:
            self._do(asking, partial(self._answer_soon, asking, message))

    def _wait(self, asking: _Asking, messages: Iterator[bytes], *, has_slot: bool) -> GoOn | None:
        """Wait for a slot and a message, in a thread."""
        if not has_slot:
            self.slots.take(asking.call)
        return self._answer(asking, next(messages, None))

    def _answer_soon(self, asking: _Asking, message: bytes | None) -> GoOn | None:
        """Answer a quick inference; have others go on in a thread."""
        asked = self.calls.asked(asking.received(message))
        waiting = self.calls.waiting(asked)
        caller = self.caller(asking.call, asking.context)
        respond = partial(self._respond, asking, asked, caller)
        if waiting is None:
            return partial(self._submit, asking, respond)
        if not (self.calls.is_quick(asked) and caller.reserve()):
            return partial(self._enter, asking, respond, caller, waiting)
        try:
            respond()
        finally:
            caller.release()
        return None

    def _answer(self, asking: _Asking, message: bytes | None) -> GoOn | None:
        """Answer an inference in a thread, unless it has to wait for a permit."""
        asked = self.calls.asked(asking.received(message))
        waiting = self.calls.waiting(asked)
        caller = self.caller(asking.call, asking.context)
        respond = partial(self._respond, asking, asked, caller)
        if waiting is not None and not caller.reserve():
            return partial(self._enter, asking, respond, caller, waiting)
        try:
            respond()
        finally:
            caller.release()
        return None

    def _respond(self, asking: _Asking, asked: AskedInference, caller: Caller) -> None:
        """Run an inference, and send the answer."""
        try:
            message = asking.call.sent(self.calls.infer(asked, caller))
        finally:
            asking.call.enter(Stage.READ)
        asking.answer.send(message)

    def _enter(self, asking: _Asking, respond: Step, caller: Caller, waiting: Waiting) -> None:
        """Have an inference run once its caller has a permit."""
        if not self.queue.enter(partial(self._do, asking, respond), caller, waiting):
            self._submit(asking, respond)  # the system has no thread for the queue

    def _submit(self, asking: _Asking, step: Step) -> None:
        """Do a step in a thread."""
        try:
            self.executor.submit(self._do, asking, step)
        except RuntimeError:  # the server has ended
            self._do(asking, _refuse)

    def _do(self, asking: _Asking, step: Step) -> None:
        """Do a step of a call, and end the call unless it goes on."""
        go_on = None
        try:
            with asking.opened as opened:
                go_on = step()
                if go_on is not None:
                    asking.opened = opened.pop_all()
        except Exception:  # noqa: BLE001 - `abort` has told grpcio which status to send
            asking.answer.send(None)
        if go_on is not None:
            go_on()


def _refuse() -> None:
    raise OipError("the server is ending", Code.UNAVAILABLE)
