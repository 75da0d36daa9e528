"""Models in int8, as ONNX Runtime's own quantizer writes them."""

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from tests.zoo.net import Array, Case

FORMATS = {"qdq": QuantFormat.QDQ, "operators": QuantFormat.QOperator}
OPERATORS = {"qdq": None, "operators": ["Conv", "MatMul", "MaxPool", "Relu"]}
"""Operators to quantize; for others ONNX Runtime writes operators of its own domain."""


class _Samples(CalibrationDataReader):
    """A case's own inputs, once."""

    def __init__(self, feeds: dict[str, Array]) -> None:
        self._left = [feeds]

    def get_next(self) -> dict[str, Array] | None:
        return self._left.pop() if self._left else None


def quantized(case: Case, form: Literal["qdq", "operators"]) -> Case:
    """Activations in uint8 by the range they have on the case's inputs, weights in int8.

    Weights have a scale for each channel. `qdq` leaves the operators and puts pairs of
    QuantizeLinear and DequantizeLinear around them; `operators` writes QLinearConv and its like.
    """
    with _quiet_folder() as folder:
        before, after = folder / "before.onnx", folder / "after.onnx"
        before.write_bytes(_without_inner_types(case.model))
        quantize_static(
            before, after, _Samples(case.feeds), quant_format=FORMATS[form], per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            op_types_to_quantize=OPERATORS[form],
        )  # fmt: skip
        return Case(after.read_bytes(), case.feeds)


def dynamically_quantized(case: Case) -> Case:
    """Weights of matrix products in int8; activations quantized as they come."""
    with _quiet_folder() as folder:
        before, after = folder / "before.onnx", folder / "after.onnx"
        before.write_bytes(_without_inner_types(case.model))
        quantize_dynamic(before, after, per_channel=True, weight_type=QuantType.QInt8)
        return Case(after.read_bytes(), case.feeds)


@contextmanager
def _quiet_folder() -> Iterator[Path]:
    """A temporary folder, and no advice from the quantizer meanwhile."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable()
        try:
            yield Path(folder)
        finally:
            logging.disable(logging.NOTSET)


def _without_inner_types(model: bytes) -> bytes:
    loaded = onnx.load_from_string(model)
    del loaded.graph.value_info[:]
    return loaded.SerializeToString()
