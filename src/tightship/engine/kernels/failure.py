"""Errors of kernels for operands that they cannot work on, with the node's name."""

from collections.abc import Iterator
from contextlib import contextmanager

from tightship.errors import GraphError, TightshipError
from tightship.graph import Node

KERNEL_ERRORS = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""Exceptions that NumPy, the core and kernels raise for shapes or values that do not fit."""


def failure(node: Node, what: str, error: Exception) -> GraphError:
    """Return the error of a node that cannot do `what`, for an error of its kernel."""
    return GraphError(
        f"Node `{node.name}` ({node.domain or 'ai.onnx'} {node.operator}, opset {node.version}) "
        f"cannot {what}: {type(error).__name__}: {error}"
    )


@contextmanager
def named(node: Node, what: str) -> Iterator[None]:
    """Turn what a kernel raises for its operands into a `GraphError` that names the node."""
    try:
        yield
    except TightshipError:
        raise
    except KERNEL_ERRORS as error:
        raise failure(node, what, error) from error
