"""Numbers of supported operations and of fused activations."""

import enum


class OperationType(enum.IntEnum):
    """Supported operations, with NNAPI's values."""

    ADD = 0
    AVERAGE_POOL_2D = 1
    CONCATENATION = 2
    CONV_2D = 3
    DEPTHWISE_CONV_2D = 4
    DEQUANTIZE = 6
    FULLY_CONNECTED = 9
    LOGISTIC = 14
    MAX_POOL_2D = 17
    MUL = 18
    RELU = 19
    RELU1 = 20
    RELU6 = 21
    RESHAPE = 22
    SOFTMAX = 25
    TANH = 28
    DIV = 30
    SUB = 36
    EQUAL = 48
    GREATER = 53
    GREATER_EQUAL = 54
    LESS = 58
    LESS_EQUAL = 59
    NOT_EQUAL = 68
    QUANTIZE = 72
    IF = 96
    WHILE = 97


CONTROL = frozenset({OperationType.IF, OperationType.WHILE})
"""Operations that run subgraphs."""


class FusedActivation(enum.IntEnum):
    """Activations applied to the result of an operation."""

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3


def operation_name(operation_type: int) -> str:
    """Return the name of an operation in messages."""
    try:
        return OperationType(operation_type).name
    except ValueError:
        return f"type {operation_type}"
