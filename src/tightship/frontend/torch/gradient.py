"""Operators of autograd's backward path, and forward ones that save values for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from tightship.frontend.torch.call import Call
from tightship.frontend.torch.normalization import by_batch, filled_like
from tightship.frontend.torch.refusal import refused
from tightship.frontend.torch.windows import pool_attributes, pools_to_size
from tightship.frontend.writer import Operand, axis_of
from tightship.graph import DType
from tightship.graph.ir import AttributeValue

Results = tuple[Operand | None, ...]

_REDUCTIONS = ("none", "mean", "sum")
"""Reductions of losses, by torch's numbers."""


@dataclass(frozen=True, slots=True)
class InverseDeviation(Operand):
    """1 / sqrt(variance + epsilon) of a batch, with the variance it was computed from."""

    variance: Operand


def of_activation(operator: str, reads: str, call: Call) -> Operand:
    """Translate the gradient of an activation, from its input or its output."""
    return _only(call.own(operator, (call["grad_output"], call[reads]), {}))


def of_relu(call: Call) -> Operand:
    """Translate the gradient of ReLU."""
    if call["threshold"]:
        raise refused(call.node, f"is of the threshold {call['threshold']}; only 0 is known")
    return _only(call.own("ReluGrad", (call["grad_output"], call["self"]), {}))


def of_gelu(call: Call) -> Operand:
    """Translate the gradient of Gelu, exact or by tanh."""
    operands = call["grad_output"], call["self"]
    return _only(call.own("GeluGrad", operands, {"approximate": call["approximate"]}))


def of_leaky_relu(call: Call) -> Operand:
    """Translate the gradient of LeakyReLU."""
    slope = float(call["negative_slope"])
    return _only(call.own("LeakyReluGrad", (call["grad_output"], call["self"]), {"alpha": slope}))


def of_hard_sigmoid(call: Call) -> Operand:
    """Translate the gradient of HardSigmoid."""
    operands = call["grad_output"], call["self"]
    return _only(call.own("HardSigmoidGrad", operands, {"alpha": 1 / 6, "beta": 0.5}))


def of_softmax(call: Call) -> Operand:
    """Translate the gradient of Softmax, from its output."""
    axis = axis_of(call["dim"], len(call.shape))
    return _only(call.own("SoftmaxGrad", (call["grad_output"], call["output"]), {"axis": axis}))


def of_log_softmax(call: Call) -> Operand:
    """Translate the gradient of LogSoftmax; after that of a likelihood it is of a cross entropy."""
    axis = axis_of(call["dim"], len(call.shape))
    operands = call["grad_output"], call["output"]
    maker = call.writer.makers.get(operands[0].name)
    if maker is not None and maker.operator == "NegativeLogLikelihoodLossGrad" and axis == 1:
        dy, *labels = (call.writer.operand(name) for name in maker.inputs)
        how = {name: each for name, each in maker.attributes.items() if name != "shape"}
        return _only(call.own("SoftmaxCrossEntropyLossGrad", (dy, operands[1], *labels), how))
    return _only(call.own("LogSoftmaxGrad", operands, {"axis": axis}))


def likelihood(call: Call) -> Results:
    """Translate the negative log likelihood; the sum of weights is not returned."""
    if call["self"].rank == 1:
        raise refused(call.node, "is of one sample without a batch", "give it a batch of one")
    operands = call["self"], call["target"], call["weight"]
    return call.result("NegativeLogLikelihoodLoss", *operands, **_loss(call)), None


def of_likelihood(call: Call) -> Operand:
    """Translate the gradient of the negative log likelihood."""
    scores: Operand = call["self"]
    operands = call["grad_output"], call["target"], call["weight"]
    how = {**_loss(call), "shape": scores.shape}
    return _only(call.own("NegativeLogLikelihoodLossGrad", operands, how))


def _loss(call: Call) -> dict[str, str | int]:
    return {
        "reduction": _REDUCTIONS[call["reduction"]],
        "ignore_index": int(call["ignore_index"]),
    }


def by_layer(call: Call) -> Results:
    """Translate LayerNorm with the means and inverse deviations that its gradient reads."""
    operand: Operand = call["input"]
    shape = tuple(call["normalized_shape"])
    scale, bias = filled_like(call, "weight", shape, 1), call["bias"]
    outputs = [call.writer.define(call.stem, *type_) for type_ in call.types if type_]
    attributes = {"axis": -len(shape), "epsilon": float(call["eps"])}
    call.writer.node("LayerNormalization", (operand, scale, bias), outputs, attributes)
    return tuple(outputs)


def of_layer(call: Call) -> Results:
    """Translate the gradient of LayerNorm, from its input and statistics."""
    shape = tuple(call["normalized_shape"])
    scale = filled_like(call, "weight", shape, 1)
    operands = call["grad_out"], call["input"], scale, call["mean"], call["rstd"]
    keep = call["output_mask"]
    return call.own("LayerNormalizationGrad", operands, {"axis": -len(shape)}, keep)


def by_statistics_of_batch(call: Call) -> Results:
    """Translate BatchNorm in training, with its statistics and updated running ones."""
    operand: Operand = call["input"]
    if not call["training"]:
        return by_batch(call)
    channels = (operand.shape[1],)
    scale, bias = (
        filled_like(call, name, channels, number) for name, number in (("weight", 1), ("bias", 0))
    )
    epsilon, keep = float(call["eps"]), (True, True, True)
    operands = operand, scale, bias
    found = call.own("BatchNormalizationTraining", operands, {"epsilon": epsilon}, keep)
    y, mean, variance = (_only((each,)) for each in found)
    root = call.like("Sqrt", call.like("Add", variance, call.scalar(epsilon, variance.dtype)))
    inverse = call.like("Reciprocal", root)
    saved = InverseDeviation(inverse.name, inverse.dtype, inverse.shape, variance)
    if "running_mean" not in call.arguments:
        return y, mean, saved
    count = int(np.prod(operand.shape)) // operand.shape[1]
    unbiased = count / max(count - 1, 1)
    running = [
        _moved(call, call["running_mean"], mean, 1.0),
        _moved(call, call["running_var"], variance, unbiased),
    ]
    return y, mean, saved, *running


def _moved(call: Call, running: Operand, now: Operand, factor: float) -> Operand:
    momentum = float(call["momentum"])
    shares = {"kept": 1 - momentum, "added": momentum * factor}
    return _only(call.own("RunningUpdate", (running, now), shares))


def of_batch(call: Call) -> Results:
    """Translate the gradient of BatchNorm, from its input and statistics."""
    operand: Operand = call["input"]
    scale = filled_like(call, "weight", (operand.shape[1],), 1)
    mean, variance = call["running_mean"], call["running_var"]
    if call["train"]:
        mean, variance = call["save_mean"], _variance(call, call["save_invstd"])
    operands = call["grad_out"], operand, scale, mean, variance
    how = {"epsilon": float(call["eps"]), "training_mode": int(call["train"])}
    return call.own("BatchNormalizationGrad", operands, how, call["output_mask"])


def _variance(call: Call, inverse: Operand) -> Operand:
    """Return the variance of an inverse deviation, which in a backward graph is an input."""
    if isinstance(inverse, InverseDeviation):
        return inverse.variance
    total = call.like("Reciprocal", call.like("Mul", inverse, inverse))
    return call.like("Sub", total, call.scalar(float(call["eps"]), inverse.dtype))


def of_convolution(call: Call) -> Results:
    """Translate the gradients of a convolution: those of image, weights and bias."""
    dy, operand, weight = call["grad_output"], call["input"], call["weight"]
    axes = weight.rank - 2
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": weight.shape[2:],
        "strides": _each(call["stride"], axes),
        "pads": _each(call["padding"], axes) * 2,
        "dilations": _each(call["dilation"], axes),
        "group": int(call["groups"]),
    }
    of_input, of_weight, of_bias = call["output_mask"]
    shaped = {**attributes, "shape": weight.shape}
    if call["transposed"]:
        return _of_transposed(call, attributes, shaped)
    weights = call.own("ConvGradWeights", (dy, operand), shaped, (of_weight, of_bias))
    shaped = {**attributes, "shape": operand.shape}
    (data,) = call.own("ConvGradData", (dy, weight), shaped, (of_input,))
    return data, *weights


def _of_transposed(
    call: Call, attributes: Mapping[str, AttributeValue], shaped: Mapping[str, AttributeValue]
) -> Results:
    """Write the gradients of a transposed convolution, with image and gradient exchanged."""
    dy, operand, weight = call["grad_output"], call["input"], call["weight"]
    of_input, of_weight, of_bias = call["output_mask"]
    kind = (operand.dtype, operand.shape)
    data = call.add("Conv", kind, dy, weight, **attributes) if of_input else None
    (weights,) = call.own("ConvGradWeights", (operand, dy), shaped, (of_weight,))
    bias = None
    if of_bias:
        others = call.integers(0, *range(2, dy.rank))
        bias = call.add("ReduceSum", (dy.dtype, (dy.shape[1],)), dy, others, keepdims=0)
    return data, weights, bias


def _each(given: list[int], axes: int) -> tuple[int, ...]:
    return tuple(given * axes if len(given) == 1 else given)


def of_largest(call: Call) -> Operand:
    """Translate the gradient of MaxPool, which goes to the first of equal elements."""
    attributes = pool_attributes(call, 2)
    attributes["dilations"] = _each(call["dilation"], 2)
    return _of_pool(call, "MaxPoolGrad", call["self"], attributes)


def of_mean(call: Call) -> Operand:
    """Translate the gradient of AveragePool."""
    if call["divisor_override"]:
        raise refused(call.node, f"divides by {call['divisor_override']} (`divisor_override`)")
    attributes = pool_attributes(call, 2)
    attributes["count_include_pad"] = int(call["count_include_pad"])
    return _of_pool(call, "AveragePoolGrad", None, attributes)


def of_mean_to_size(call: Call) -> Operand:
    """Translate the gradient of an adaptive AveragePool whose windows divide the image."""
    dy: Operand = call["grad_output"]
    kernel = pools_to_size(call, call.shape[-2:], dy.shape[-2:])
    attributes = {"kernel_shape": kernel, "strides": kernel}
    return _of_pool(call, "AveragePoolGrad", None, attributes)


def _of_pool(
    call: Call,
    operator: str,
    image: Operand | None,
    attributes: Mapping[str, tuple[int, ...] | int],
) -> Operand:
    """Write the gradient of a pool, with a batch of one if there is none."""
    batched = (1,) * (4 - len(call.shape))
    operands = [call.reshaped(each, batched + each.shape) for each in (call["grad_output"], image)
                if each]  # fmt: skip
    shape = {} if image else {"shape": batched + call.shape}
    return call.reshaped(_only(call.own(operator, operands, {**attributes, **shape})), call.shape)


def of_rows(call: Call) -> Operand:
    """Translate the gradient of an embedding: sums for each row, none for the row of padding."""
    if call["scale_grad_by_freq"]:
        raise refused(call.node, "scales gradients by how often a row is read")
    dy, indices = call["grad_output"], call["indices"]
    if call["padding_idx"] >= 0:
        padding = call.scalar(call["padding_idx"], indices.dtype)
        hidden = call.add("Equal", (DType.BOOL, indices.shape), indices, padding)
        hidden = call.reshaped(hidden, (*indices.shape, 1))
        dy = call.add("Where", (dy.dtype, dy.shape), hidden, call.scalar(0, dy.dtype), dy)
    return _only(call.own("GatherGrad", (dy, indices), {"axis": 0, "shape": call.shape}))


def of_slice(call: Call) -> Operand:
    """Translate the gradient of a slice, zero elsewhere."""
    axis = axis_of(call["dim"], len(call.shape))
    start, stop, step = slice(call["start"], call["end"], call["step"]).indices(call.shape[axis])
    return _spread(call, call["grad_output"], axis, (start, stop, step))


def of_position(call: Call) -> Operand:
    """Translate the gradient of a selected position, zero elsewhere."""
    axis = axis_of(call["dim"], len(call.shape))
    index = call["index"] % call.shape[axis]
    kept = (*call.shape[:axis], 1, *call.shape[axis + 1 :])
    dy = call.reshaped(call["grad_output"], kept)
    return _spread(call, dy, axis, (index, index + 1, 1))


def _spread(call: Call, dy: Operand, axis: int, where: tuple[int, int, int]) -> Operand:
    start, stop, step = where
    if step == 1:
        before, after = [0] * dy.rank, [0] * dy.rank
        before[axis] = start
        after[axis] = call.shape[axis] - start - dy.shape[axis]
        return call.result("Pad", dy, call.integers(*before, *after))
    ranges = [call.integers(number) for number in (start, stop, axis, step)]
    return _only(call.own("SliceGrad", (dy, *ranges), {"shape": call.shape}))


def dropped(call: Call) -> Results:
    """Translate Dropout, with the mask of kept elements."""
    operand: Operand = call["input"]
    if call["train"] is False or call["p"] == 0:
        return operand, call.held(np.ones((), np.bool_))
    ratio = call.scalar(call["p"], operand.dtype)
    outputs = [call.writer.define(call.stem, *type_) for type_ in call.types if type_]
    is_training = call.scalar(1, DType.BOOL)
    call.writer.node("Dropout", (operand, ratio, is_training), outputs, {})
    return tuple(outputs)


def of_dropped(call: Call) -> Operand:
    """Translate the gradient of Dropout."""
    dy: Operand = call["grad_output"]
    kept = call.add("Where", (dy.dtype, dy.shape), call["mask"], dy, call.scalar(0, dy.dtype))
    return call.like("Mul", kept, call.scalar(call["scale"], dy.dtype))


def _only(found: Results) -> Operand:
    operand = found[0]
    assert operand is not None
    return operand


TABLE: Mapping[str, Callable[[Call], Operand | Results]] = {
    "_adaptive_avg_pool2d_backward.default": of_mean_to_size,
    "_log_softmax_backward_data.default": of_log_softmax,
    "_native_batch_norm_legit.no_stats": by_statistics_of_batch,
    "_native_batch_norm_legit_functional.default": by_statistics_of_batch,
    "_softmax_backward_data.default": of_softmax,
    "avg_pool2d_backward.default": of_mean,
    "convolution_backward.default": of_convolution,
    "embedding_dense_backward.default": of_rows,
    "gelu_backward.default": of_gelu,
    "hardsigmoid_backward.default": of_hard_sigmoid,
    "hardswish_backward.default": partial(of_activation, "HardSwishGrad", "self"),
    "leaky_relu_backward.default": of_leaky_relu,
    "max_pool2d_with_indices_backward.default": of_largest,
    "native_batch_norm_backward.default": of_batch,
    "native_dropout.default": dropped,
    "native_dropout_backward.default": of_dropped,
    "native_layer_norm.default": by_layer,
    "native_layer_norm_backward.default": of_layer,
    "nll_loss2d_backward.default": of_likelihood,
    "nll_loss2d_forward.default": likelihood,
    "nll_loss_backward.default": of_likelihood,
    "nll_loss_forward.default": likelihood,
    "select_backward.default": of_position,
    "sigmoid_backward.default": partial(of_activation, "SigmoidGrad", "output"),
    "slice_backward.default": of_slice,
    "tanh_backward.default": partial(of_activation, "TanhGrad", "output"),
    "threshold_backward.default": of_relu,
}
