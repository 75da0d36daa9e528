"""One inference: inputs from the request or from regions, the run, and delivery of outputs."""

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from tightship._core import StopFlag
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.datatypes import name_of
from tightship.driver.oip.infer_request import (
    InferRequest,
    InputTensor,
    RegionPart,
    RequestedOutput,
)
from tightship.driver.oip.infer_response import OutputTensor
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles, Window
from tightship.driver.oip.regions import Code, check_input_bytes, check_output_bytes
from tightship.driver.oip.request_shapes import check_configured, shape_said
from tightship.driver.oip.served_model import ServedModel
from tightship.driver.oip.tensors import Array, from_bytes, from_list, to_bytes
from tightship.driver.types.elements import may_change
from tightship.errors import DeadlineError, InputError, StoppedError, TightshipError
from tightship.graph import DType, size_bytes
from tightship.model import Model

ACCEPTED_MAX = 256
"""Forms of requests that are remembered for each model, after which they are forgotten."""

Windows = dict[RegionPart, Window]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Request of a client that arrived at a time of `monotonic_ns`."""

    request: InferRequest
    asked_ns: int
    caller: Caller


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Request with everything that was looked up for it.

    Attributes:
        direct: Outputs that the model writes in place.
        is_cached: Whether it can be repeated as it is: every tensor is used in place in a region,
            so the reply is the same.
    """

    served: ServedModel
    request: InferRequest
    wishes: tuple[RequestedOutput, ...]
    windows: Windows
    arrays: dict[str, Array]
    direct: dict[str, Array]
    is_cached: bool

    @property
    def model(self) -> Model:
        """Model to run."""
        return self.served.model


def bind(
    served: ServedModel, request: InferRequest, regions: RegionFiles, uses: ExitStack
) -> Bound:
    """Check a request and locate its tensors.

    Raises:
        OipError, RegionError: The request does not fit the model or the regions.
    """
    name, model = served.name, served.model
    _check(served, request)
    windows = _windows(request, regions, uses)
    wishes = _wishes(served, request)
    written = [windows[requested.region] for requested in wishes if requested.region is not None]
    arrays = {each.name: _array(name, each, windows, written) for each in request.inputs}
    if not written:
        return Bound(served, request, wishes, windows, arrays, {}, is_cached=False)
    direct = {} if _meet(written) else _direct(model, wishes, windows)
    is_cached = len(direct) == len(wishes) and all(
        isinstance(each.content, RegionPart)
        and arrays[each.name].ctypes.data == windows[each.content].bytes.ctypes.data
        for each in request.inputs
    )
    return Bound(served, request, wishes, windows, arrays, direct, is_cached)


def run(bound: Bound, asked_ns: int, stop: StopFlag) -> dict[str, Array]:
    """Run a request that arrived at `asked_ns` while its bytes are mapped, until `stop`.

    Returns:
        The model's outputs by name.

    Raises:
        OipError: The run fails.
    """
    timeout_s = bound.request.left_s(asked_ns)
    try:
        return bound.model.run(bound.arrays, outputs=bound.direct, timeout_s=timeout_s, stop=stop)
    except (TightshipError, MemoryError) as error:
        raise refusal_of(error, bound.model) from error


def refusal_of(error: TightshipError | MemoryError, model: Model) -> OipError:
    """Return the error of the protocol for that of a model's run."""
    match error:
        case DeadlineError():
            return OipError("Request timeout expired", Code.UNAVAILABLE)
        case StoppedError():
            return OipError("the call was cancelled", Code.UNAVAILABLE)
        case InputError():
            code = Code.UNAVAILABLE if model.is_closed else Code.INVALID_ARGUMENT
            return OipError(str(error), code)
        case MemoryError():
            return OipError(str(error), Code.UNAVAILABLE)
        case _:
            return OipError(str(error), Code.INTERNAL)


def outputs_of(bound: Bound, results: dict[str, Array]) -> tuple[OutputTensor, ...]:
    """Return the outputs of the reply, after copying outputs to regions where necessary.

    Raises:
        RegionError: A region is too small for its output.
    """
    return tuple(_output(bound, results, requested) for requested in bound.wishes)


def _check(served: ServedModel, request: InferRequest) -> None:
    """Check everything that needs no tensor's bytes; once for requests that look alike."""
    given = tuple([(each.name, each.dtype, each.shape) for each in request.inputs])
    form = given, tuple([requested.name for requested in request.outputs])
    if form in served.accepted:
        return
    _check_form(served, request)
    if len(served.accepted) >= ACCEPTED_MAX:
        served.accepted.clear()
    served.accepted.add(form)


def _check_form(served: ServedModel, request: InferRequest) -> None:
    """Check names, element types and shapes.

    Raises:
        OipError: They do not fit the model.
    """
    name, model = served.name, served.model
    types = model.input_types
    for each in request.inputs:
        if each.name not in types:
            raise OipError(f"unexpected inference input '{each.name}' for model '{name}'")
    given = [each.name for each in request.inputs]
    missing = [each for each in types if each not in given]
    if missing or len(given) != len(types):
        raise OipError(
            f"expected {len(types)} inputs but got {len(given)} inputs for model '{name}'. Got "
            f"input(s) {given}, but missing required input(s) {missing}. Please provide all "
            "required input(s)."
        )
    for each in request.inputs:
        dtype, shape = types[each.name]
        if each.dtype is not dtype:
            raise OipError(
                f"inference input '{each.name}' data-type is '{name_of(each.dtype)}', but model "
                f"'{name}' expects '{name_of(dtype)}'"
            )
        if shape is not None and shape != each.shape and not model.takes_other_shapes:
            raise OipError(
                f"unexpected shape for input '{each.name}' for model '{name}'. Expected "
                f"{shape_said(shape)}, got {shape_said(each.shape)}"
            )
    if served.config is not None:
        check_configured(served, served.config, request)
    asked = [requested.name for requested in request.outputs]
    unknown = [each for each in asked if each not in served.outputs]
    if unknown:
        raise OipError(f"unexpected inference output '{unknown[0]}' for model '{name}'")
    if len(set(asked)) != len(asked):
        raise OipError(f"an output of model '{name}' is asked for more than once")


def _windows(request: InferRequest, regions: RegionFiles, uses: ExitStack) -> Windows:
    contents = [each.content for each in request.inputs] + [w.region for w in request.outputs]
    parts = {part for part in contents if isinstance(part, RegionPart)}
    if not parts:
        return {}
    return {
        part: uses.enter_context(regions.used(part.region, part.offset_bytes, part.size_bytes))
        for part in sorted(parts, key=lambda part: (part.region, part.offset_bytes))
    }


def _array(model: str, tensor: InputTensor, windows: Windows, written: Sequence[Window]) -> Array:
    """Return the value of an input: in place, unless it must not change or will be overwritten."""
    content = tensor.content
    if isinstance(content, list):
        return from_list(tensor.name, tensor.dtype, tensor.shape, content)
    if isinstance(content, memoryview):
        return from_bytes(model, tensor.name, tensor.dtype, tensor.shape, content)
    if tensor.dtype is not DType.STRING:
        needed = size_bytes(tensor.dtype, tensor.shape)
        check_input_bytes(model, tensor.name, needed, content.size_bytes)
    window = windows[content]
    is_left = may_change(tensor.dtype.numpy) and not any(map(window.overlaps, written))
    found = window.bytes if is_left else window.bytes.copy()
    return from_bytes(model, tensor.name, tensor.dtype, tensor.shape, found.data)


def _direct(model: Model, wishes: Sequence[RequestedOutput], windows: Windows) -> dict[str, Array]:
    """Return the outputs that a model can write in place; with open lengths, none."""
    if model.takes_other_shapes:
        return {}
    found = {}
    for requested in wishes:
        dtype, shape = model.output_types[requested.name]
        if requested.region is None or shape is None or not may_change(dtype.numpy):
            continue
        place, needed = windows[requested.region].bytes, size_bytes(dtype, shape)
        check_output_bytes(requested.name, needed, place.size)
        if needed and place.ctypes.data % dtype.numpy.itemsize == 0:
            found[requested.name] = place[:needed].view(dtype.numpy).reshape(shape)
    return found


def _meet(windows: Sequence[Window]) -> bool:
    return any(one.overlaps(other) for one, other in itertools.combinations(windows, 2))


def _wishes(served: ServedModel, request: InferRequest) -> tuple[RequestedOutput, ...]:
    if request.outputs:
        return request.outputs
    return tuple(RequestedOutput(name, request.is_binary) for name in served.outputs)


def _output(bound: Bound, results: dict[str, Array], requested: RequestedOutput) -> OutputTensor:
    array, dtype = results[requested.name], bound.served.outputs[requested.name][0]
    part = requested.region
    if part is None:
        return OutputTensor(requested.name, dtype, array.shape, array, requested.is_binary, {})
    size_of_all = part.size_bytes
    if requested.name not in bound.direct:
        raw = to_bytes(array, dtype)
        check_output_bytes(requested.name, raw.nbytes, part.size_bytes)
        bound.windows[part].bytes[: raw.nbytes] = np.frombuffer(raw, np.uint8)
        size_of_all = raw.nbytes if dtype is DType.STRING else part.size_bytes
    parameters = {"shared_memory_region": part.region, "shared_memory_byte_size": size_of_all}
    if part.offset_bytes:
        parameters["shared_memory_offset"] = part.offset_bytes
    return OutputTensor(requested.name, dtype, array.shape, None, requested.is_binary, parameters)
