"""Loads a GGUF file whose programs are kept, without reading its graph."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library, release_unused
from tightship.engine.weights.weight_store import Progress
from tightship.errors import CapacityError, FormatError
from tightship.loading.kept.programs import KeptPrograms, OwnProgram
from tightship.loading.kept.variants import LateVariants
from tightship.model import Model
from tightship.model.late_model import LateModel, LateProgram

if TYPE_CHECKING:
    from tightship.engine.template.variants import Variants
    from tightship.loading.unprepared import Keep


def load_kept(
    model: ModelSource,
    settings: Settings,
    bounds: Bounds,
    progress: Progress | None,
    *,
    apart: bool = True,
) -> "tuple[Keep | None, Model | None]":
    """Load a model from its kept program.

    Args:
        model: The model.
        settings: Settings that its program depends on.
        bounds: Limits of its memory.
        progress: As for `load`.
        apart: Whether another process makes the program if it is not kept.

    Returns:
        The model, None if its program is not kept or exceeds the bounds, which `load_anew`
        explains; before it, what keeps the program that `load_anew` makes, None if none is kept.
    """
    if "onednn" not in settings.without:
        open_library()
    kept = KeptPrograms.of(model, settings)
    if kept is None:
        return None, None
    found = kept.own()
    if found is None and apart and kept.make_own_apart():
        found = kept.own()
    keep = partial(keep_in, kept, bounds)
    if found is None:
        return keep, None
    late = LateVariants(kept, replace(settings, shapes=None), found.inputs, found.outputs, bounds,
                        partial(_variants, model, settings, bounds))  # fmt: skip
    own = LateProgram(name_of(model), found.types, found.weights, settings.without,
                      partial(_read, found, late))  # fmt: skip
    if bounds.limit_bytes is None:
        return keep, LateModel(own, bounds, late, progress)
    from tightship.loading.budget import check_budget  # few models have a limit

    compiled = own.read()
    try:
        check_budget(compiled.plan, bounds.limit_bytes, bounds.dynamic_bytes, None)
    except CapacityError:
        return keep, None
    loaded = Model(compiled, bounds, late, progress)
    del compiled
    release_unused()
    return keep, loaded


def _variants(model: ModelSource, settings: Settings, bounds: Bounds) -> "Variants":
    """Read the model's file."""
    from tightship.loading.opening import open_for
    from tightship.loading.unprepared import variants_of

    source, resolved = open_for(model, settings)
    variants = variants_of(source, name_of(model), resolved, bounds)
    assert variants is not None, "a program is kept of files with open lengths"
    return variants


def _read(found: OwnProgram, late: LateVariants) -> CompiledModel:
    """Return the program of loading, made anew if the library has other kernels now."""
    try:
        return found.kept.compiled()
    except FormatError:
        weights = {weight.name: [weight] for weight in found.weights}
        return late.prepare(dict(found.kept.keys[0]), weights)


def keep_in(
    kept: KeptPrograms, bounds: Bounds, compiled: CompiledModel, variants: "Variants"
) -> LateVariants:
    """Keep the program of loading; return a compiler that keeps those of sessions."""
    outputs = variants.output_shapes()
    kept.add_own(compiled, variants.declared, outputs)
    settings = variants.settings
    return LateVariants(kept, settings, variants.declared, outputs, bounds, lambda: variants)
