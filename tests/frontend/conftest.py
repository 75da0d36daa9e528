"""ONNX's node suite, which the reader must take as a whole."""

from tests.backend.conftest import node_cases

__all__ = ["node_cases"]
