"""Models of these tests for a real Triton server's Python backend.

python -m tests.driver.oip.triton_models FOLDER
tritonserver --model-repository=FOLDER
TIGHTSHIP_TRITON=127.0.0.1:8000,127.0.0.1:8001 pytest tests/scenarios/serve/test_region_table.py

Release 2.51 needs NumPy before 2: with a later one its Python backend answers with empty tensors.
The backend imports what the first `python3` in PATH would, whatever PYTHONPATH says, so start it
with the `bin` of a virtual environment first in PATH.
"""

import sys
from pathlib import Path

CONFIG = """name: "{name}"
backend: "python"
max_batch_size: 0
input [{inputs}]
output [{outputs}]
instance_group [{{count: 1 kind: KIND_CPU}}]
"""
TENSOR = '{{name: "{name}" data_type: TYPE_{kind} dims: {dims}}}'
CODE = """import triton_python_backend_utils as backend


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        def given(name):
            return backend.get_input_tensor_by_name(request, name).as_numpy()

        outputs = {{{outputs}}}
        tensors = [backend.Tensor(name, array) for name, array in outputs.items()]
        return backend.InferenceResponse(tensors)
"""
SUM, DIFFERENCE = 'given("INPUT0") + given("INPUT1")', 'given("INPUT0") - given("INPUT1")'
MODELS = {
    "identity": ("FP32", [-1, 4], ("x",), {"y": 'given("x")'}),
    "simple": ("INT32", [1, 16], ("INPUT0", "INPUT1"), {"OUTPUT0": SUM, "OUTPUT1": DIFFERENCE}),
}


def write(folder):
    for name, (kind, dims, inputs, outputs) in MODELS.items():
        place = Path(folder) / name / "1"
        place.mkdir(parents=True, exist_ok=True)

        def tensors(names, kind=kind, dims=dims):
            return " ".join(TENSOR.format(name=each, kind=kind, dims=dims) for each in names)

        config = CONFIG.format(name=name, inputs=tensors(inputs), outputs=tensors(outputs)).replace(
            "} {", "}, {"
        )
        (place.parent / "config.pbtxt").write_text(config)
        said = ", ".join(f'"{output}": {code}' for output, code in outputs.items())
        (place / "model.py").write_text(CODE.format(outputs=said))


if __name__ == "__main__":
    write(sys.argv[1])
