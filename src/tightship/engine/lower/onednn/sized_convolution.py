"""Convolutions whose images only the run knows: oneDNN's, over some images at a time.

Such a step has no place in a plan. Its primitives are made for the images that come, a few at a
time whatever their number, and are those of the process's cache, so that later runs find them.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tightship._core import (
    Attributes,
    MemoryDesc,
    NativeContext,
    NativeProgram,
    PrimitiveDesc,
    StopFlag,
)
from tightship.engine.interruption import check_interruption
from tightship.engine.kernels.kernel import Array
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.kernels.reference import ReferenceRun
from tightship.engine.kernels.sized.by_shape import output_shapes
from tightship.engine.library import library_threads
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.window import transposed_window_of, window_of
from tightship.graph import Node
from tightship.graph.operators import body

SRC, DST, WEIGHTS, BIAS, SCRATCHPAD = 1, 17, 33, 41, 80
OPERATORS = frozenset({"Conv", "ConvTranspose"})
IMAGES = 8
"""Images of a call: enough to use a kernel well, and few enough to need little memory."""
OPERATIONS_MIN = 1 << 28
"""Operations of a step, some 2.5 ms, from which it pays to make a program for new shapes, 1 ms."""
SHAPES_MAX = 16
"""Shapes of images, and numbers of them below `IMAGES`, whose programs a node keeps."""
ALIGNMENT = 64
Shape = tuple[int, ...]
_ARENA, _FIRST_EXTERNAL = 0, 2
_IMAGE, _RESULT, _WEIGHTS, _BIAS = range(4)


def sized_convolution(node: Node, threads: int, other: ReferenceRun) -> ReferenceRun:
    """Make a convolution ready to run on arrays of any shape; return `other` for other nodes.

    Args:
        node: Any node, without fused ones.
        threads: Threads of the primitives.
        other: Runs the node on what oneDNN has no fast primitive for, and on small operands.
    """
    if node.operator not in OPERATORS or node.domain:
        return other

    @lru_cache(SHAPES_MAX)
    def made(*shapes: tuple[int, ...]) -> "_Program | None":
        with suppress(NotCoveredError):
            return _Program(node, shapes, threads)
        return None

    def run(operands: Sequence[Any]) -> list[Any]:
        given = [each for each in operands if each is not None]
        program = None
        if _is_large(given):
            (count, *image), *others = (each.shape for each in given)
            program = made((min(count, IMAGES), *image), *others)
        if program is None:
            return list(other(operands))
        return [program.run(list(map(np.ascontiguousarray, given)))]

    return run


def _is_large(operands: Sequence[Any]) -> bool:
    """Whether operands are images, weights and perhaps a bias of float32, and many numbers."""
    for each in operands:
        if not isinstance(each, np.ndarray) or each.dtype != np.float32:
            return False
    images, weights = operands[:2]
    if not 3 <= images.ndim == weights.ndim <= 5:
        return False
    pixels = images.size // max(images.shape[1], 1)
    return bool(2 * pixels * weights.size >= OPERATIONS_MIN)


class _Program:
    """Program that packs weights, then convolves a number of images; runs may overlap.

    Attributes:
        arena_bytes: Memory of a run.
        result: Shape of the result of one call.
    """

    def __init__(self, node: Node, shapes: tuple[tuple[int, ...], ...], threads: int) -> None:
        """Describe the primitives, and find or compile them.

        Args:
            node: The convolution.
            shapes: Shapes of as many images as a call has, of weights, and of a bias if any.
            threads: Threads of the primitives.

        Raises:
            NotCoveredError: oneDNN has none that is fast.
        """
        (self.result, *_) = output_shapes(covered(body("shape", node.operator, "")), node, shapes)
        require(prod(self.result) > 0)
        self.arena_bytes = 0
        self._count, self._native = shapes[0][0], NativeProgram()
        with library_threads(threads):
            self._describe(node, *shapes)
            self._native.compile(threads)

    def _describe(
        self, node: Node, image: Shape, weights: Shape, bias: Shape | None = None
    ) -> None:
        stored = _stored(node, weights)
        added = None if bias is None else MemoryDesc(list(bias))
        is_transposed = node.operator == "ConvTranspose"
        windowed = transposed_window_of if is_transposed else window_of
        window = windowed(node, weights[2:], image[2:], self.result[2:])
        free = [MemoryDesc.any(list(dims)) for dims in (image, stored.dims, self.result)]
        operands = [free[0], free[1], added, free[2]]
        desc = covered(
            fast(
                lambda: PrimitiveDesc.convolution(
                    operands, window.parts, transposed=is_transposed, attributes=Attributes()
                )
            )
        )
        packed = self._converted(stored, desc.operand(WEIGHTS), _WEIGHTS)
        self._packing = self._native.step_count
        source = self._converted(MemoryDesc(list(image)), desc.operand(SRC), _IMAGE)
        result, plain = desc.operand(DST), MemoryDesc(list(self.result))
        target = (_FIRST_EXTERNAL + _RESULT, 0)
        if result != plain:
            target = self._room(result.size_bytes)
        arguments = [
            (SRC, desc.operand(SRC), source),
            (WEIGHTS, desc.operand(WEIGHTS), packed),
            (DST, result, target),
        ]
        if added is not None:
            arguments.append((BIAS, added, (_FIRST_EXTERNAL + _BIAS, 0)))
        if desc.scratchpad_bytes:
            scratch = desc.operand(SCRATCHPAD), self._room(desc.scratchpad_bytes)
            arguments.append((SCRATCHPAD, *scratch))
        self._native.add_primitive(desc, arguments)
        if result != plain:
            self._reorder(result, target, plain, (_FIRST_EXTERNAL + _RESULT, 0))

    def _converted(self, given: MemoryDesc, wanted: MemoryDesc, slot: int) -> tuple[int, int]:
        """Return the place of an operand in the wanted layout, to which it is converted."""
        place = _FIRST_EXTERNAL + slot, 0
        if given == wanted:
            return place
        room = self._room(wanted.size_bytes)
        self._reorder(given, place, wanted, room)
        return room

    def _reorder(
        self, given: MemoryDesc, source: tuple[int, int], wanted: MemoryDesc, to: tuple[int, int]
    ) -> None:
        desc = PrimitiveDesc.reorder(given, wanted, Attributes())
        arguments = [(SRC, given, source), (DST, wanted, to)]
        if desc.scratchpad_bytes:
            room = self._room(desc.scratchpad_bytes)
            arguments.append((SCRATCHPAD, desc.operand(SCRATCHPAD), room))
        self._native.add_primitive(desc, arguments)

    def _room(self, size_bytes: int) -> tuple[int, int]:
        """Return a place in the arena for so many bytes."""
        start = self.arena_bytes
        self.arena_bytes += -(-size_bytes // ALIGNMENT) * ALIGNMENT
        return _ARENA, start

    def run(self, operands: Sequence[Array]) -> Array:
        """Return the result for images, weights and bias; images are at least those of a call.

        The last call has the last images, some of which may be of the call before.

        Raises:
            StoppedError, DeadlineError: The run that this is part of must end.
            MemoryError: Memory of the run or the result cannot be had.
        """
        images = operands[0]
        found = np.empty((len(images), *self.result[1:]), np.float32)
        room = np.empty(self.arena_bytes + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        context = NativeContext(self._native, room.ctypes.data + start)
        for slot, array in zip((_WEIGHTS, _BIAS), operands[1:], strict=False):
            context.bind_external(slot, array)
        flag, steps = StopFlag(), self._native.step_count
        if self._packing:
            context.run((0, self._packing), flag)
        for first in (*range(0, len(images) - self._count, self._count), len(images) - self._count):
            check_interruption()
            context.bind_external(_IMAGE, images[first : first + self._count])
            context.bind_external(_RESULT, found[first : first + self._count])
            context.run((self._packing, steps), flag)
        return found


def _stored(node: Node, weights: tuple[int, ...]) -> MemoryDesc:
    """Describe weights as they are stored: [groups,] outputs, inputs, kernel.

    A transposed convolution stores its inputs before its outputs.
    """
    groups = node.integer("group", 1)
    dims = [groups, weights[0] // groups, *weights[1:]]
    strides = dense_strides(dims)
    if node.operator == "ConvTranspose":
        dims[1:3], strides[1:3] = dims[2:0:-1], strides[2:0:-1]
    alone = int(groups == 1)
    return MemoryDesc(dims[alone:], "float32", strides[alone:])
