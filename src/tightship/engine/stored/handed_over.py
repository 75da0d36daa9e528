"""Writes a program and its weights into memory, for one process that reads it once."""

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from tightship._core import HostResource
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.container import PAGE_BYTES
from tightship.engine.stored.recipes import RecipeWriter
from tightship.engine.stored.save import alone_json, finish
from tightship.engine.weights.pack import Bytes, pack_each
from tightship.engine.weights.weight_store import Progress, aligned_offsets


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Program, with its weights, for one process that reads it once from memory.

    Its weights lie as in a block of that process. They have no checksums, and equal ones are not
    looked for.
    """

    said: Mapping[str, object]
    recipes: RecipeWriter
    weights: Sequence[PackedWeight]

    @staticmethod
    def of(compiled: CompiledModel, compatibility: Compatibility) -> "HandedOver":
        """Describe a program, whose recipes were recorded while it was lowered.

        Raises:
            InputError: It cannot be stored; names its step.
        """
        weights, recipes = compiled.placement.lowered.weights, RecipeWriter()
        starts = aligned_offsets(weights)[0]
        rows = [(each.name, PAGE_BYTES + start, each.size_bytes, 0)
                for each, start in zip(weights, starts, strict=True)]  # fmt: skip
        return HandedOver(alone_json(compiled, compatibility, rows, recipes), recipes, weights)

    def write(self, file: BinaryIO, progress: Progress | None) -> None:
        """Pack the weights where they lie in an open and empty file in memory; write the rest.

        Raises:
            OSError: The system refuses the memory.
            OutOfMemoryError: Memory to pack a weight cannot be allocated.
        """
        offsets, size = aligned_offsets(self.weights)
        stop = -(-(PAGE_BYTES + size) // PAGE_BYTES) * PAGE_BYTES
        os.posix_fallocate(file.fileno(), 0, stop)  # else a page that is refused ends the process
        room = np.frombuffer(mmap.mmap(file.fileno(), stop), np.uint8)[PAGE_BYTES:]

        def place(index: int) -> Bytes:
            return room[offsets[index] : offsets[index] + self.weights[index].size_bytes]

        pack_each(self.weights, place, HostResource(), progress)
        file.seek(stop)
        finish(file, self.said, self.recipes)
        file.flush()
