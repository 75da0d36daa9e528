"""Plans a model, and hands its program and packed weights over to the process that asked for it.

Modules that read and lower are imported in the process that does it.
"""

import os
from typing import TYPE_CHECKING

from tightship.errors import InputError, OutOfMemoryError, TightshipError

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import Settings
    from tightship.engine.weights.weight_store import Progress

WEIGHTS_BYTES_MAX = 64 << 20
"""Most bytes of weights that are handed over.

Both processes touch the memory of each, so that BERT with 330 MiB took 1.9 times as long to load,
and the 20 MiB that another process spares are a small part of what such a model takes.
"""


def hand_over(
    path: str,
    memory: int,
    settings: "Settings",
    limits: tuple[int | None, int | None],
    progress: "Progress | None" = None,
) -> TightshipError | bool:
    """Write the program and packed weights of a model into memory.

    Args:
        path: Path of an ONNX file.
        memory: Descriptor of an empty file in memory.
        settings: Settings of the plan.
        limits: Most bytes of the plan and of steps outside it, as `load` has them.
        progress: Function called with the bytes of weights packed so far and in all.

    Returns:
        Whether it was written, or the error that `load` is to raise. False leaves it to the other
        process to plan, and to say what is wrong.
    """
    try:
        return _handed_over(path, memory, settings, limits, progress)
    except OutOfMemoryError:
        return False
    except TightshipError as error:
        return error
    except Exception:  # noqa: BLE001  the other process meets it as well
        return False


def _handed_over(
    path: str,
    memory: int,
    settings: "Settings",
    limits: tuple[int | None, int | None],
    progress: "Progress | None",
) -> bool:
    from tightship.engine.compile.compile_graph import name_of, prepare
    from tightship.engine.library import open_library
    from tightship.engine.stored.compatibility import Compatibility
    from tightship.engine.stored.handed_over import HandedOver
    from tightship.engine.stored.recipes import recording
    from tightship.frontend.onnx import OnnxFile
    from tightship.graph import size_bytes
    from tightship.loading.opening import check_limit, is_open, open_for

    if "onednn" not in settings.without:
        open_library()
    source, settings = open_for(path, settings)
    if not isinstance(source, OnnxFile) or is_open(source.declared):
        return False
    source.check_whole()
    graph = source.graph(settings.input_shapes)
    weights = graph.constants.values()
    if sum(size_bytes(each.dtype, each.shape) for each in weights) > WEIGHTS_BYTES_MAX:
        return False  # they lie in other files, or this process would not have been asked
    with recording():
        compiled = prepare(graph, name_of(path), settings)
        compiled = compiled._replace(stated=compiled.plan)  # it is compared with others once
        made = Compatibility.here(settings.threads, settings.without, settings.workers)
        try:
            written = HandedOver.of(compiled, made)
        except InputError:
            return False  # a step of it cannot be stored
    if limits[0] is not None:
        check_limit(compiled.plan, path, settings, limits[0], limits[1])
    with open(os.dup(memory), "r+b") as file:
        written.write(file, progress)
    return True
