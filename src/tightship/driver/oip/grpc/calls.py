"""gRPC calls of the protocol, from message to message."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic_ns
from typing import Any
from urllib.parse import unquote

from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.endpoint import (
    LOG_SETTINGS,
    TRACE_SETTINGS,
    InferenceEndpoint,
    Inferred,
    check_unchanged,
)
from tightship.driver.oip.grpc.infer import (
    Message,
    OutputForm,
    fill,
    form_of,
    raw_of,
    request_of,
)
from tightship.driver.oip.grpc.raw import cut, joined
from tightship.driver.oip.grpc.waiting_calls import Waiting
from tightship.driver.oip.infer_request import REPEATED_BYTES_MAX, InferRequest, InputTensor
from tightship.driver.oip.infer_response import Answers
from tightship.driver.oip.quick_runs import QuickRuns
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.region_calls import Memory, register_cuda, status, unregister
from tightship.driver.oip.regions import Region, RegionError
from tightship.driver.oip.schema import ONE_OF, message_classes, parsed

FORM_BYTES_MAX = 512
"""Longest message without raw contents by which one is known to be as quick as those before."""
RAW_INPUTS, RAW_OUTPUTS, STREAMED = 7, 6, 2
"""Field numbers of raw contents in requests and responses, and of a stream's response."""


class GrpcCalls:
    """Answers calls, bytes in and out. May be used from several threads.

    Attributes:
        unary: Functions by name that answer one request of a caller; inferences are not of them.
    """

    def __init__(self, endpoint: InferenceEndpoint) -> None:
        self._endpoint = endpoint
        self._classes = message_classes()
        self._answers: Answers[bytes] = Answers()
        self._quick = QuickRuns()
        endpoint.repository.on_withdrawn.append(lambda _: self._quick.forget())
        self._read_again = lru_cache(maxsize=256)(lambda header: self._read(header, ()))
        self._read_form = lru_cache(maxsize=256)(
            lambda header, count: self._read(header, (memoryview(b""),) * count)
        )
        self._described = lru_cache(maxsize=256)(self._describe)
        self.unary: Mapping[str, Callable[[bytes, Caller], bytes]] = {
            name: self._answering(name, call) for name, call in _CALLS.items()
        }

    def caller(self, account: str, peer: str) -> Caller:
        """Return the caller of one call, by its account and its address in gRPC's form."""
        return Caller(self._endpoint.permits, account, peer)

    def stream(
        self,
        requests: Iterator[bytes],
        caller: Caller,
        count: Callable[[], None],
        refused: Callable[[str], None],
    ) -> Iterator[bytes]:
        """Answer the inference requests of a stream in order; an error does not end it.

        Args:
            requests: Encoded requests.
            caller: Client of the stream.
            count: Called for each request; raises an error of the protocol to refuse it.
            refused: Called with the reason for each refused request.
        """
        for request in requests:
            try:
                count()
                answer = self.infer(self.asked(request), caller, is_streamed=True)
                yield joined(b"", STREAMED, [answer])
            except (OipError, RegionError, MemoryError) as error:
                reason = OUT_OF_MEMORY if isinstance(error, MemoryError) else str(error)
                refused(reason)
                said = self._classes["ModelStreamInferResponse"](error_message=reason)
                yield said.SerializeToString()

    def _answering(self, name: str, call: "Call") -> Callable[[bytes, Caller], bytes]:
        asked, answer = self._classes[f"{name}Request"], self._classes[f"{name}Response"]

        def answered(data: bytes, _: Caller) -> bytes:
            said = call(self._endpoint, parsed(asked, data))
            return bytes(ParseDict(said or {}, answer()).SerializeToString())

        return answered

    def asked(self, data: bytes) -> "AskedInference":
        """Read a request for an inference.

        Raises:
            OipError: It is not valid.
        """
        came_ns = monotonic_ns()
        header, raw = cut(data, RAW_INPUTS)
        form = header if len(header) <= FORM_BYTES_MAX else None
        if raw and form is not None:
            call = self._read_form(header, len(raw)).with_raw(raw)
        elif raw or len(header) > REPEATED_BYTES_MAX:
            call = self._read(header, raw)
        else:
            call = self._read_again(header)
        return AskedInference(call, came_ns, len(data), form)

    def is_quick(self, asked: "AskedInference") -> bool:
        """Whether such inferences were quick the last times, so that one needs no thread."""
        return self._quick.have(asked.model) or self._quick.have(asked.form)

    def waiting(self, asked: "AskedInference") -> Waiting | None:
        """Return what an inference waits for; None if it may be joined with others.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        call = asked.call
        served = self._endpoint.repository.served(call.model, call.version)
        if self._endpoint.joins(served):
            return None
        return Waiting(served, call.request.left_s(asked.came_ns))

    def infer(self, asked: "AskedInference", caller: Caller, *, is_streamed: bool = False) -> bytes:
        """Run a model once the caller has a permit; return the encoded response.

        Raises:
            OipError, RegionError: As from `InferenceEndpoint.infer`.
        """
        call = asked.call
        found = self._endpoint.infer(call.model, call.version, call.request, asked.came_ns, caller)
        key = asked.model if found.served.is_constant_time else asked.form
        self._quick.note(found.served, key, found.took_ns)
        outputs = found.outputs
        is_plain = not (is_streamed and call.wants_final)
        answer = self._answers.find(outputs) if is_plain else None
        if answer is None:
            answer = self._answer(call, found, is_final=not is_plain)
            if is_plain:
                self._answers.keep(outputs, answer)
        found.served.metrics.transfer(asked.size_bytes, len(answer))
        return answer

    def _read(self, header: bytes, raw: Sequence[memoryview]) -> "_InferCall":
        message = parsed(self._classes["ModelInferRequest"], header)
        wants_final = "triton_enable_empty_final_response" in message.parameters
        request = request_of(message, raw)
        return _InferCall(message.model_name, message.model_version, request, wants_final)

    def _answer(self, call: "_InferCall", found: Inferred, *, is_final: bool) -> bytes:
        identifier, forms = call.request.identifier, tuple(map(form_of, found.outputs))
        describe = self._describe if identifier else self._described
        header = describe(call.model, found.served.version, identifier, forms, is_final)
        return joined(header, RAW_OUTPUTS, raw_of(found.outputs))

    def _describe(
        self,
        model: str,
        version: str,
        identifier: str,
        outputs: Sequence[OutputForm],
        is_final: bool,  # noqa: FBT001  a key
    ) -> bytes:
        """Encode a response without its raw contents."""
        response = self._classes["ModelInferResponse"](
            model_name=model, model_version=version, id=identifier
        )
        if is_final:
            response.parameters["triton_final_response"].bool_param = True
        fill(response, outputs)
        return bytes(response.SerializeToString())


@dataclass(frozen=True, slots=True, eq=False)
class _InferCall:
    """Inference; `wants_final` if a stream must mark the last response."""

    model: str
    version: str
    request: InferRequest
    wants_final: bool

    def with_raw(self, raw: Sequence[memoryview]) -> "_InferCall":
        """Return the inference with other raw contents, one for each input that has some."""
        asked, left = self.request, iter(raw)
        inputs = tuple(
            [
                InputTensor(each.name, each.dtype, each.shape, next(left))
                if isinstance(each.content, memoryview)
                else each
                for each in asked.inputs
            ]
        )
        request = InferRequest(
            asked.identifier, inputs, asked.outputs, asked.is_binary, asked.timeout_s
        )
        return _InferCall(self.model, self.version, request, self.wants_final)


@dataclass(frozen=True, slots=True, eq=False)
class AskedInference:
    """Inference that came at a time of `monotonic_ns`, in a message of `size_bytes`.

    Attributes:
        form: The message without raw contents, which says names and shapes; None if it is long.
    """

    call: _InferCall
    came_ns: int
    size_bytes: int
    form: bytes | None

    @property
    def model(self) -> tuple[str, str]:
        """Name and version of the model."""
        return self.call.model, self.call.version


def account_of(peer: str) -> str:
    """Return a client's address without the port that gRPC adds; others unchanged."""
    kind, _, where = unquote(peer).partition(":")
    return where.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else peer


Said = dict[str, Any]
Call = Callable[[InferenceEndpoint, Message], Said | None]


def _system_status(endpoint: InferenceEndpoint, asked: Message) -> Said:
    found = status(endpoint.regions, Memory.SYSTEM, asked.name or None)
    return {"regions": {each["name"]: each for each in found}}


def _system_register(endpoint: InferenceEndpoint, asked: Message) -> None:
    endpoint.regions.register(Region(asked.name, asked.key, asked.offset, asked.byte_size))


def _cuda_status(endpoint: InferenceEndpoint, asked: Message) -> Said:
    status(endpoint.regions, Memory.CUDA, asked.name or None)
    return {}


def _parameters(asked: Message) -> dict[str, object]:
    """Return the parameters of a call about the repository."""
    return {
        key: getattr(each, each.WhichOneof(ONE_OF) or "string_param")
        for key, each in asked.parameters.items()
    }


def _trace_settings(_: InferenceEndpoint, asked: Message) -> Said:
    check_unchanged(dict(asked.settings), "trace")
    return {"settings": {key: {"value": value} for key, value in TRACE_SETTINGS.items()}}


def _log_settings(_: InferenceEndpoint, asked: Message) -> Said:
    check_unchanged(dict(asked.settings), "log")
    return {"settings": {key: {"bool_param": value} for key, value in LOG_SETTINGS.items()}}


_CALLS: Mapping[str, Call] = {
    "ServerLive": lambda _, __: {"live": True},
    "ServerReady": lambda endpoint, _: {"ready": endpoint.is_ready},
    "ServerMetadata": lambda endpoint, _: endpoint.metadata(),
    "ModelReady": lambda endpoint, asked: {
        "ready": endpoint.is_model_ready(asked.name, asked.version)
    },
    "ModelMetadata": lambda endpoint, asked: endpoint.model_metadata(asked.name, asked.version),
    "ModelConfig": lambda endpoint, asked: {
        "config": endpoint.model_config(asked.name, asked.version)
    },
    "ModelStatistics": lambda endpoint, asked: endpoint.statistics(asked.name, asked.version),
    "RepositoryIndex": lambda endpoint, asked: {
        "models": endpoint.repository.index(only_ready=asked.ready)
    },
    "RepositoryModelLoad": lambda endpoint, asked: endpoint.load(
        asked.model_name, _parameters(asked)
    ),
    "RepositoryModelUnload": lambda endpoint, asked: endpoint.unload(
        asked.model_name, _parameters(asked)
    ),
    "SystemSharedMemoryStatus": _system_status,
    "SystemSharedMemoryRegister": _system_register,
    "SystemSharedMemoryUnregister": lambda endpoint, asked: unregister(
        endpoint.regions, Memory.SYSTEM, asked.name or None
    ),
    "CudaSharedMemoryStatus": _cuda_status,
    "CudaSharedMemoryRegister": lambda endpoint, asked: register_cuda(endpoint.regions, asked.name),
    "CudaSharedMemoryUnregister": lambda endpoint, asked: unregister(
        endpoint.regions, Memory.CUDA, asked.name or None
    ),
    "TraceSetting": _trace_settings,
    "LogSettings": _log_settings,
}
