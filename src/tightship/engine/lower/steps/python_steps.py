"""Steps that run in Python: NumPy kernels over planned operands, and kernels on objects."""

from collections.abc import Callable

from tightship.engine.kernels import ReferenceRun, numpy_kernel, object_kernel
from tightship.engine.kernels.sized.native import sized_operator
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.data_bounds import unplanned_reason
from tightship.engine.program.program import KernelWork, Operand, ReferenceWork
from tightship.graph import Node
from tightship.planner.schedule import AliasKind


def emit_numpy(builder: Builder, node: Node) -> bool:
    """Emit a NumPy kernel over planned operands, if there is one."""
    if not all(builder.home_is_planned(name) for name in node.reads):
        return False
    inputs = [builder.value(name) if name else None for name in node.inputs]
    outputs = [builder.value(name) if name else None for name in node.outputs]
    kernel = numpy_kernel(node, inputs, outputs, builder.known)
    if kernel is None:
        return False
    sources = tuple(builder.dense(name) if name else None for name in node.inputs)
    targets = tuple(builder.output(name) if name else None for name in node.outputs)
    share = [
        (target, source, AliasKind.IN_PLACE)
        for target, source in ((targets[o], sources[i]) for o, i in kernel.in_place)
        if target is not None and source is not None
    ]
    builder.step(
        node,
        ("numpy", kernel.name),
        (_present(sources), _present(targets)),
        KernelWork(kernel, sources, targets),
        scratch_bytes=kernel.scratch_bytes,
        share=share,
    )
    return True


Improve = Callable[[Node, int, ReferenceRun], ReferenceRun]
"""Function from a node, threads and a kernel to a faster kernel, or the same one."""


def emit_objects(builder: Builder, node: Node, improve: Improve | None = None) -> None:
    """Emit a kernel on objects, which allocates its results; static ones are then copied."""
    sources = tuple(builder.dense(name) if name else None for name in node.operands)
    targets = tuple(_output(builder, name) if name else None for name in node.outputs)
    types = [builder.value(name).dtype if name else None for name in node.outputs]
    kernel = object_kernel(node, types, allow_reference=builder.options.use_reference)
    run = improve(node, builder.threads, kernel.run) if improve else kernel.run
    native = sized_operator(node) if builder.options.use_native else None
    builder.step(
        node,
        ("reference", kernel.name),
        (_present(sources), _present(targets)),
        ReferenceWork(run, sources, targets, native),
        dynamic_reason=unplanned_reason(builder, node),
    )


def _output(builder: Builder, name: str) -> Operand:
    value = builder.value(name)
    return builder.output(name) if value.is_static else builder.object_operand(value)


def _present(operands: tuple[Operand | None, ...]) -> tuple[Operand, ...]:
    return tuple(operand for operand in operands if operand is not None)
