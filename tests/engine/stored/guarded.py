"""Every kernel of the core in some models, run with exactly the bytes of its reach.

    python -m tests.engine.stored.guarded PART PARTS

Takes each PARTS-th model of ONNX's node suite, from PART on. An operand ends where a page without
access begins: a kernel that reports too small a reach ends the process. Prints the number of
kernels.
"""

import sys
import warnings
from pathlib import Path

from tests.onnx_node_suite import node_tests
from tightship import _core
from tightship._core import (
    GuardPageResource,
    HostResource,
    KernelError,
    NativeContext,
    NativeKernel,
    NativeProgram,
    StopFlag,
)
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.library import open_library
from tightship.engine.program.program import NativeWork
from tightship.errors import TightshipError
from tightship.loading.opening import open_model

THREADS = 2


def run(kernel: NativeKernel) -> None:
    """Run a kernel over zeros."""
    resource = GuardPageResource(HostResource(), quarantine_bytes=0)
    sizes = [(low, high - low) for low, high in kernel.reach()]
    if scratch := kernel.scratch_bytes(THREADS):
        sizes.append((0, scratch))
    blocks = [resource.allocate_block(size, 1) for _, size in sizes]
    base = blocks[0].address if blocks else 0
    program = NativeProgram()
    program.add_kernel(
        kernel,
        [(0, b.address - low - base) for b, (low, _) in zip(blocks, sizes, strict=True)],
    )
    program.compile(THREADS)
    program.bind_weights(base)
    try:
        NativeContext(program, base).run((0, 1), StopFlag())
    except KernelError:
        return


def kernels(model: Path | bytes) -> list[NativeKernel]:
    """The kernels of a model, made again from their recipes; none where it is not for the core."""
    try:
        graph = open_model(model).graph(None)
        steps = prepare(graph, "model", Settings(threads=THREADS)).placement.lowered.steps
    except TightshipError:
        return []
    recipes = {step.work.kernel.recipe for step in steps if isinstance(step.work, NativeWork)}
    return [NativeKernel.of_recipe(recipe) for recipe in recipes]


def main(part: int, parts: int) -> None:
    """Run the kernels of some models; print how many."""
    warnings.simplefilter("ignore")
    open_library()
    _core.record_recipes(wanted=True)
    count = 0
    for case in node_tests()[part::parts]:
        folder = Path(case.model_dir or "")
        found = kernels(case.model.SerializeToString() if case.model else folder / "model.onnx")
        for kernel in found:
            run(kernel)
        count += len(found)
    sys.stdout.write(str(count))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
