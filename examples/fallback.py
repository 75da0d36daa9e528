"""A recurrent model in a driver, its state in a buffer there; it goes on here if the driver dies.

python examples/fallback.py cell.onnx 100 [SOCKET]

Every few steps the state is copied out. Where the driver refuses or is gone, the steps since are
done again, in this process.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import tightship
from tightship.driver import REFUSALS, Client
from tightship.errors import DriverError

Array = np.ndarray[Any, Any]

KEPT_EVERY = 8
"""Steps after which the state is copied out."""


class Course:
    """A state on its way: what it was last known to be, and after how many inputs."""

    def __init__(self, cell: str, state: Array) -> None:
        self.cell, self.state, self.done = cell, state.copy(), 0

    def in_driver(self, inputs: Sequence[Array], path: str | None) -> None:
        """Take inputs as long as the driver lives."""
        with Client(path) as client:
            model = client.prepare(self.cell)
            state, after = (
                client.allocate(inputs=[(model, 1)], outputs=[(model, 0)]) for _ in range(2)
            )
            state.copy_from(self.state)
            for step in range(self.done, len(inputs)):
                model.execute([inputs[step], state.of()], [after.of()])
                state, after = after, state
                if (step + 1) % KEPT_EVERY == 0 or step + 1 == len(inputs):
                    kept = np.empty_like(self.state)
                    state.copy_to(kept)
                    self.state, self.done = kept, step + 1

    def here(self, inputs: Sequence[Array]) -> None:
        """Take what inputs are left."""
        with tightship.load(self.cell) as model:
            for x in inputs[self.done :]:
                self.state = np.asarray(model(x, self.state))
                self.done += 1


def follow(cell: str, inputs: Sequence[Array], state: Array, path: str | None = None) -> Array:
    """The state after all inputs.

    Args:
        cell: File of a model that takes an input and a state, and gives the next state.
        inputs: For each step.
        state: To begin with.
        path: Of a driver's socket; None is where it listens by default.
    """
    course = Course(cell, state)
    try:
        course.in_driver(inputs, path)
    except DriverError as error:
        if error.status not in REFUSALS:
            raise
        print(f"from step {course.done} on without a driver: {error}", file=sys.stderr)
        course.here(inputs)
    return course.state


def main(cell: str, steps: int, path: str | None = None) -> float:
    """Follow a cell over made-up inputs."""
    with tightship.load(cell) as model:
        shapes = [shape for _, shape in model.input_types.values()]
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shapes[0], np.float32) for _ in range(steps)]
    return float(np.sum(follow(cell, inputs, np.zeros(shapes[1] or (), np.float32), path)))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
