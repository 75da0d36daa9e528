"""One inference: inputs from the request or from regions, the run, outputs to where they go."""

from contextlib import ExitStack
from time import monotonic_ns, time_ns

from tightship.driver.oip.datatypes import name_of
from tightship.driver.oip.infer_request import InferRequest, InputTensor, OutputWish, RegionPart
from tightship.driver.oip.infer_response import OutputTensor
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles, read, write
from tightship.driver.oip.request_counts import RequestCounts
from tightship.driver.oip.tensors import Array, from_bytes, from_list, to_bytes
from tightship.driver.rules.regions import Code, check_input_bytes, check_output_bytes
from tightship.errors import DeadlineError, InputError, TightshipError
from tightship.graph import DType, size_bytes
from tightship.model import Model

Place = tuple[int, int]
"""A file, and where in it bytes begin."""


def infer(
    name: str, model: Model, request: InferRequest, regions: RegionFiles, counts: RequestCounts
) -> tuple[OutputTensor, ...]:
    """Run a model on a request, and count it.

    Raises:
        OipError, RegionError: The request does not fit the model or the regions, or the run fails.
    """
    began = monotonic_ns()
    try:
        _check(name, model, request)
        with ExitStack() as uses:
            places = _places(request, regions, uses)
            arrays = {each.name: _array(name, each, places) for each in request.inputs}
            read_ns = monotonic_ns()
            results = _run(model, arrays, request.timeout_s)
            ran_ns = monotonic_ns()
            wishes = _wishes(model, request)
            outputs = tuple(_output(model, results, wish, places) for wish in wishes)
    except TightshipError:
        counts.add_failure(monotonic_ns() - began)
        raise
    phases = (read_ns - began, ran_ns - read_ns, monotonic_ns() - ran_ns)
    counts.add_success(phases, time_ns() // 1_000_000)
    return outputs


def _check(name: str, model: Model, request: InferRequest) -> None:
    """Check what can be before any bytes are read."""
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
                f"{_said(shape)}, got {_said(each.shape)}"
            )
    asked = [wish.name for wish in request.outputs]
    unknown = [each for each in asked if each not in model.output_names]
    if unknown:
        raise OipError(f"unexpected inference output '{unknown[0]}' for model '{name}'")
    if len(set(asked)) != len(asked):
        raise OipError(f"an output of model '{name}' is asked for more than once")


def _said(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _places(
    request: InferRequest, regions: RegionFiles, uses: ExitStack
) -> dict[RegionPart, Place]:
    """The files of all regions the request speaks of, open until its end."""
    contents = [each.content for each in request.inputs] + [w.region for w in request.outputs]
    parts = {part for part in contents if isinstance(part, RegionPart)}
    return {
        part: uses.enter_context(regions.used(part.region, part.offset_bytes, part.size_bytes))
        for part in sorted(parts, key=lambda part: (part.region, part.offset_bytes))
    }


def _array(model: str, tensor: InputTensor, places: dict[RegionPart, Place]) -> Array:
    content = tensor.content
    if isinstance(content, list):
        return from_list(tensor.name, tensor.dtype, tensor.shape, content)
    if isinstance(content, RegionPart):
        if tensor.dtype is not DType.STRING:
            needed = size_bytes(tensor.dtype, tensor.shape)
            check_input_bytes(model, tensor.name, needed, content.size_bytes)
        content = read(*places[content], content.size_bytes)
    return from_bytes(model, tensor.name, tensor.dtype, tensor.shape, content)


def _run(model: Model, arrays: dict[str, Array], timeout_s: float | None) -> dict[str, Array]:
    try:
        return model.run(arrays, timeout_s=timeout_s)
    except DeadlineError:
        raise OipError("Request timeout expired", Code.UNAVAILABLE) from None
    except InputError as error:
        code = Code.UNAVAILABLE if model.is_closed else Code.INVALID_ARGUMENT
        raise OipError(str(error), code) from error
    except TightshipError as error:
        raise OipError(str(error), Code.INTERNAL) from error


def _wishes(model: Model, request: InferRequest) -> tuple[OutputWish, ...]:
    if request.outputs:
        return request.outputs
    return tuple(OutputWish(name, request.is_binary) for name in model.output_names)


def _output(
    model: Model, results: dict[str, Array], wish: OutputWish, places: dict[RegionPart, Place]
) -> OutputTensor:
    array, dtype = results[wish.name], model.output_types[wish.name][0]
    part = wish.region
    if part is None:
        return OutputTensor(wish.name, dtype, array.shape, array, wish.is_binary, {})
    raw = to_bytes(array, dtype)
    check_output_bytes(wish.name, raw.nbytes, part.size_bytes)
    write(*places[part], raw)
    parameters = {
        "shared_memory_region": part.region,
        "shared_memory_byte_size": raw.nbytes if dtype is DType.STRING else part.size_bytes,
    }
    if part.offset_bytes:
        parameters["shared_memory_offset"] = part.offset_bytes
    return OutputTensor(wish.name, dtype, array.shape, None, wish.is_binary, parameters)
