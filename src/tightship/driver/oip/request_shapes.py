"""Shapes of a request's inputs compared with the configuration of its model."""

from collections.abc import Sequence

from tightship.driver.oip.infer_request import InferRequest
from tightship.driver.oip.model_config import ANY, ModelConfig
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.served_model import ServedModel


def check_configured(served: ServedModel, config: ModelConfig, request: InferRequest) -> None:
    """Check the shapes of inputs, which all have the batch first if batches are configured.

    Raises:
        OipError: A shape does not fit, or the batch is too large or not that of other inputs.
    """
    for each in request.inputs:
        wanted = served.inputs[each.name][1]
        if wanted is not None and not _fits(each.shape, wanted):
            raise OipError(
                f"unexpected shape for input '{each.name}' for model '{served.name}'. Expected "
                f"{shape_said(wanted)}, got {shape_said(each.shape)}"
            )
    if config.max_batch_size:
        _check_batch(served.name, config.max_batch_size, request)


def _check_batch(name: str, size_max: int, request: InferRequest) -> None:
    for each in request.inputs:
        size, first = each.shape[0], request.inputs[0]
        if size != first.shape[0]:
            raise OipError(
                f"input '{each.name}' batch size does not match other inputs for '{name}': {size}, "
                f"where '{first.name}' has {first.shape[0]}"
            )
        if not 1 <= size <= size_max:
            raise OipError(
                f"inference request batch-size must be <= {size_max} for '{name}', and at least 1; "
                f"it is {size}"
            )


def _fits(shape: Sequence[int], wanted: Sequence[object]) -> bool:
    return len(shape) == len(wanted) and all(
        not isinstance(length, int) or each == length
        for each, length in zip(shape, wanted, strict=True)
    )


def shape_said(shape: Sequence[object]) -> str:
    """Return a shape in the words of errors, with open lengths as -1."""
    return f"[{','.join(str(each if isinstance(each, int) else ANY) for each in shape)}]"
