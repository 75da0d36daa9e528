"""Model files as ONNX Runtime takes the least memory for: weights mapped, at aligned places."""

import sys
from pathlib import Path

import onnx
from onnx import TensorProto, external_data_helper

ALIGNMENT = 4096
SMALLEST = 1024
"""Bytes below which a weight stays in the model's own file."""


def with_external_weights(source: Path, target: Path) -> None:
    """Write a model with its weights in `TARGET.bin`, each at a page of its own."""
    model = onnx.load(source)
    data = target.with_suffix(".bin")
    with data.open("wb") as file:
        for tensor in model.graph.initializer:
            if len(tensor.raw_data) < SMALLEST:
                continue
            offset = -(-file.tell() // ALIGNMENT) * ALIGNMENT
            file.seek(offset)
            file.write(tensor.raw_data)
            external_data_helper.set_external_data(
                tensor, data.name, offset=offset, length=len(tensor.raw_data)
            )
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
    target.write_bytes(model.SerializeToString())


def optimised(source: Path, target: Path) -> None:
    """Have ONNX Runtime write its optimised, blocked, packed model, its weights in `TARGET.bin`."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = str(target)
    prefix = "session.optimized_model_external_initializers_"
    for key, value in (
        (f"{prefix}file_name", f"{target.stem}.bin"),
        (f"{prefix}min_size_in_bytes", str(SMALLEST)),
        ("session.save_external_prepacked_constant_initializers", "1"),
    ):
        options.add_session_config_entry(key, value)
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    optimised(Path(sys.argv[1]), Path(sys.argv[2]))
