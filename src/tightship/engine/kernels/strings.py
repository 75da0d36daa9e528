"""StringConcat and StringSplit on strings of any bytes, trailing zeros included.

`onnx.reference` runs them on NumPy's strings, which drop trailing zeros.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.graph import Node
from tightship.graph.texts import joined


def string_concat(_: Node, __: MakeRun) -> ReferenceRun:
    concat = np.frompyfunc(joined, 2, 1)

    def run(operands: Sequence[Any]) -> list[Any]:
        return [np.asarray(concat(operands[0], operands[1]), object)]

    return run


def split(node: Node, _: MakeRun) -> ReferenceRun:
    delimiter = node.attributes.get("delimiter") or None
    limit = node.integer("maxsplit", -1)
    assert isinstance(delimiter, str | None), delimiter

    def run(operands: Sequence[Any]) -> list[Any]:
        (texts,) = operands
        pieces = [text.split(delimiter, limit) for text in texts.reshape(-1)]
        counts = np.array([len(each) for each in pieces], np.int64)
        width = int(counts.max(initial=0))
        found = np.full((len(pieces), width), "", object)
        for row, each in enumerate(pieces):
            found[row, : len(each)] = each
        return [found.reshape(*texts.shape, width), counts.reshape(texts.shape)]

    return run
