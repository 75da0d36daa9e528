"""Emitters of oneDNN primitives for nodes; the primitives choose their layouts.

An emitter returns False, having added nothing, if oneDNN has no fast implementation.
"""

from collections.abc import Callable

from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Node

Emitter = Callable[[Builder, Node], bool]
