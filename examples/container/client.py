"""A client of a driver that it reaches by nothing but a socket: memory is handed over with it.

In one terminal:  tightship serve model.onnx --socket driver.sock
In another:       python examples/container/client.py driver.sock model
In a container:   see the Dockerfile beside this.
"""

import sys

import numpy as np

from tightship.driver import Client, dtype_of


def main(path: str, name: str) -> float:
    """Run a model that the driver was started with, its input and output in common memory."""
    with Client(path) as client:
        model = client.prepare_named(name)
        values = [*model.interface.inputs, *model.interface.outputs]
        room = sum(value.size_bytes + 64 for value in values)
        with client.segment(room) as segment:
            placed = [segment.place(value.dimensions, dtype_of(value)) for value in values]
            inputs = placed[: len(model.interface.inputs)]
            for each in inputs:
                each.array[...] = 1
            results = model.execute(inputs, placed[len(inputs) :])
            return float(sum(np.sum(result) for result in results if result is not None))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print(main(*sys.argv[1:]))
