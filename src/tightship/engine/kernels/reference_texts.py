"""Encodes strings of any bytes in a form that `onnx.reference` keeps.

Attributes and constants reach it through ONNX messages, which it reads as UTF-8, and some of its
operators use NumPy's strings, which drop trailing zeros. For such nodes, surrogates, which stand
for bytes that are not UTF-8, and zeros are replaced by private characters in attributes and
operands, and restored in results.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tightship.errors import GraphError
from tightship.graph import Constant, DType, Graph, Inline, Node

NUMPY_STRINGS = frozenset(
    {"Cast", "CastLike", "LabelEncoder", "StringNormalizer", "TfIdfVectorizer"}
)

_PLANE = 0x100000
_HIDDEN = {0: 0x10DC7F} | {code: code + _PLANE for code in range(0xDC80, 0xDD00)}
_SHOWN = {hidden: code for code, hidden in _HIDDEN.items()}


def hidden(text: str) -> str:
    """Encode a string in letters that UTF-8 has, without zeros."""
    return text.translate(_HIDDEN)


def needs_hiding(node: Node) -> bool:
    """Whether a node uses NumPy's strings, or has a string that must be encoded."""
    return node.operator in NUMPY_STRINGS or any(hidden(text) != text for text in _texts(node))


def hidden_operand(value: Any) -> Any:  # noqa: ANN401  operands are any object
    """Encode the strings of an operand with `hidden`.

    Raises:
        GraphError: A string has one of the private characters.
    """
    return _mapped(value, _hide)


def shown_operand(value: Any) -> Any:  # noqa: ANN401  as above
    """Decode the strings of a result."""
    return _mapped(value, lambda text: text.translate(_SHOWN))


def _hide(text: str) -> str:
    if text.translate(_SHOWN) != text:
        raise GraphError(
            "A string has one of the private characters U+10DC7F to U+10DCFF; none may for this "
            "operator, because they stand for bytes in its kernel."
        )
    return hidden(text)


def _mapped(value: Any, change: Any) -> Any:  # noqa: ANN401  as above
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    if isinstance(value, np.ndarray) and value.dtype == object:
        found = np.empty(value.size, object)
        found[:] = [_mapped(each, change) for each in value.reshape(-1)]
        return found.reshape(value.shape)
    return change(value) if isinstance(value, str) else value


def _texts(node: Node) -> Iterator[str]:
    """Yield the strings of a node's attributes, and of the graphs among them."""
    for value in node.attributes.values():
        match value:
            case str():
                yield value
            case tuple():
                yield from (each for each in value if isinstance(each, str))
            case Graph():
                for constant in value.constants.values():
                    yield from _elements(constant)
                for inner in value.nodes:
                    yield from _texts(inner)
            case Inline():
                yield from _elements(value)


def _elements(constant: Constant) -> Iterator[str]:
    if constant.dtype is DType.STRING:
        yield from constant.array().reshape(-1).tolist()
