"""Plans a model, and hands its program and packed weights over to the process that asked for it.

Modules that read and lower are imported in the process that does it.
"""

import os
from os import PathLike
from typing import TYPE_CHECKING

from tightship.errors import InputError, OutOfMemoryError, TightshipError

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import Settings
    from tightship.engine.compile.compiled_model import CompiledModel
    from tightship.engine.plan.memory_plan import MemoryPlan
    from tightship.engine.plan.planned_apart import PlannedApart
    from tightship.engine.stored.handed_over import HandedOver
    from tightship.engine.weights.weight_store import Progress
    from tightship.frontend.onnx import OnnxFile

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
) -> "TightshipError | PlannedApart | None":
    """Write the program and packed weights of a model into memory.

    Args:
        path: Path of an ONNX file.
        memory: Descriptor of an empty file in memory.
        settings: Settings of the plan.
        limits: Most bytes of the plan and of steps outside it, as `load` has them.
        progress: Function called with the bytes of weights packed so far and in all.

    Returns:
        What its plan states of this process, or the error that `load` is to raise. None leaves it
        to the other process to plan, and to say what is wrong.
    """
    try:
        return _handed_over(path, memory, settings, limits, progress)
    except OutOfMemoryError:
        return None
    except TightshipError as error:
        return error
    except Exception:  # noqa: BLE001  the other process meets it as well
        return None


def _handed_over(
    path: str,
    memory: int,
    settings: "Settings",
    limits: tuple[int | None, int | None],
    progress: "Progress | None",
) -> "PlannedApart | None":
    from tightship.available import available_bytes
    from tightship.engine.library import open_library
    from tightship.frontend.onnx import OnnxFile
    from tightship.loading.opening import check_limit, open_for

    if "onednn" not in settings.without:
        open_library()
    source, settings = open_for(path, settings)
    if not isinstance(source, OnnxFile):
        return None
    source.check_whole()
    compiled, written = compile_apart(source, path, settings)
    if written is None:
        return None
    plan = compiled.plan
    if limits[0] is not None:
        check_limit(plan, path, settings, limits[0], limits[1])
    if plan.weights_bytes > available_bytes():
        return None  # constants that a file computes may take more than the file
    with open(os.dup(memory), "r+b") as file:
        written.write(file, progress)
    return plan.apart


def plan_file(path: str, settings: "Settings") -> "MemoryPlan":
    """Plan a model that is in a file, as `plan` does.

    Raises:
        TightshipError: The errors of `plan`.
    """
    from tightship.engine.compile.compile_graph import name_of
    from tightship.engine.library import open_library
    from tightship.frontend.onnx import OnnxFile
    from tightship.loading.opening import anew, open_for

    if "onednn" not in settings.without:
        open_library()  # first, because opening takes the most memory for a moment
    source, settings = open_for(path, settings)
    if isinstance(source, OnnxFile):
        return compile_apart(source, path, settings)[0].plan
    return anew(source, name_of(path), settings).plan


def compile_apart(
    source: "OnnxFile", path: str | PathLike[str], settings: "Settings"
) -> "tuple[CompiledModel, HandedOver | None]":
    """Compile a model whose plan states that another process plans it, if one can.

    Args:
        source: The file, opened.
        path: Path of the file.
        settings: Settings with shapes by input.

    Returns:
        The program, and what hands it over; None if the process that loads plans it itself.
    """
    from tightship.engine.compile.compile_graph import name_of, prepare
    from tightship.engine.plan.planned_apart import planned_apart
    from tightship.engine.stored.compatibility import Compatibility
    from tightship.engine.stored.handed_over import HandedOver
    from tightship.engine.stored.recipes import recording
    from tightship.frontend.gguf_letters import begins_as_gguf
    from tightship.graph import size_bytes
    from tightship.loading.opening import anew, is_open

    name = name_of(path)
    size = os.path.getsize(path)
    if is_open(source.declared) or size > WEIGHTS_BYTES_MAX or begins_as_gguf(path):
        return anew(source, name, settings), None
    graph = source.graph(settings.input_shapes)
    weights = graph.constants.values()
    if sum(size_bytes(each.dtype, each.shape) for each in weights) > WEIGHTS_BYTES_MAX:
        return prepare(graph, name, settings), None  # they lie in other files
    with recording():
        compiled = prepare(graph, name, settings)
        plan, lowered = compiled.plan, compiled.placement.lowered
        stated = planned_apart(plan, lowered, compiled.node_count)
        made = Compatibility.here(settings.threads, settings.without, settings.workers)
        try:
            return (found := compiled._replace(stated=stated)), HandedOver.of(found, made)
        except InputError:  # a step of it cannot be stored
            return compiled._replace(stated=plan), None
