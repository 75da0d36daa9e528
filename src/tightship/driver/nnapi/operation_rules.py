"""Table of the functions that translate operations."""

from collections.abc import Callable, Mapping

from tightship.driver.nnapi import arrangement, comparison, convolution, elementwise, pooling
from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.operation_context import OperationContext
from tightship.driver.nnapi.operation_type import OperationType

RULES: Mapping[OperationType, Callable[[OperationContext], Tensor]] = {
    OperationType.ADD: elementwise.binary,
    OperationType.AVERAGE_POOL_2D: pooling.average_pool,
    OperationType.CONCATENATION: arrangement.concatenation,
    OperationType.CONV_2D: convolution.convolution,
    OperationType.DEPTHWISE_CONV_2D: convolution.depthwise_convolution,
    OperationType.DEQUANTIZE: elementwise.dequantize,
    OperationType.FULLY_CONNECTED: convolution.fully_connected,
    OperationType.LOGISTIC: elementwise.logistic,
    OperationType.MAX_POOL_2D: pooling.max_pool,
    OperationType.MUL: elementwise.binary,
    OperationType.RELU: elementwise.activation,
    OperationType.RELU1: elementwise.activation,
    OperationType.RELU6: elementwise.activation,
    OperationType.RESHAPE: arrangement.reshape,
    OperationType.SOFTMAX: elementwise.softmax,
    OperationType.TANH: elementwise.tanh,
    OperationType.DIV: elementwise.binary,
    OperationType.SUB: elementwise.binary,
    OperationType.EQUAL: comparison.compare,
    OperationType.GREATER: comparison.compare,
    OperationType.GREATER_EQUAL: comparison.compare,
    OperationType.LESS: comparison.compare,
    OperationType.LESS_EQUAL: comparison.compare,
    OperationType.NOT_EQUAL: comparison.compare,
    OperationType.QUANTIZE: elementwise.quantize,
}
