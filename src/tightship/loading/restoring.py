"""`plan` and `load` of prepared models, without the ONNX file and without onnx."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

from tightship.engine.activations import (
    EXACT,
    activations_of,
    passes_of,
    precision_of,
    with_activations,
    with_precision,
)
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.input_shapes import check_shapes, shape_or_length
from tightship.engine.compile.shape_specializer import ShapeSpecializer
from tightship.engine.library import open_library, release_unused
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.stored.compatibility import VERSION, Compatibility
from tightship.engine.stored.dimensions import lengths_of, with_lengths
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.shapes import StoredShapes
from tightship.errors import FormatError, InputError
from tightship.model import Model

FilePath = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """Request for a prepared model; None and empty leave it to the file."""

    shapes: Mapping[str, Sequence[int] | int] | None = None
    threads: int | None = None
    without: Collection[str] = ()
    activations: str | None = None
    workers: int | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        check_shapes(self.shapes)


def plan_prepared(path: FilePath, asked: Asked) -> MemoryPlan:
    """Return the plan in a prepared model, opening nothing else.

    Raises:
        FormatError: The file is damaged, or was made for another environment.
        InputError: It has no program for the shapes.
    """
    stored = StoredModel(path)
    _check_asked(path, stored, asked)
    return stored.plan(program_index(stored, asked))


def load_prepared(
    path: FilePath,
    asked: Asked,
    bounds: Bounds,
    further: Callable[[StoredShapes], ShapeSpecializer] | None = None,
) -> Model:
    """Load a model from a prepared file alone, with its weights mapped.

    Args:
        path: Path of the file.
        asked: Requirements on the preparation.
        bounds: Limits of the model's memory.
        further: Function that adds further shapes to those of the file.

    Raises:
        CapacityError: Its plan exceeds the bounds; nothing has been loaded.
        FormatError: The file is damaged, or was made for another environment.
        InputError: It has no program for the shapes.
    """
    stored = open_prepared(path, asked)
    index = program_index(stored, asked)
    limit, dynamic = bounds.limit_bytes, bounds.dynamic_bytes
    if limit is not None:
        from tightship.loading.budget import check_budget

        check_budget(stored.plan(index), limit, dynamic, None)

    def check(plan: MemoryPlan, shapes: Mapping[str, tuple[int, ...]]) -> None:
        if limit is not None:
            from tightship.loading.budget import check_shapes

            check_shapes(plan, shapes, limit, dynamic)

    own = StoredShapes(stored, check)
    others = own if further is None else further(own)
    loaded = Model(stored.prepared(index), bounds, others, packed=stored.copies)
    stored.forget()
    release_unused()
    return loaded


def open_prepared(path: FilePath, asked: Asked) -> StoredModel:
    """Open a prepared model whose kernels can be reconstructed here.

    Raises:
        FormatError: The file is damaged, or was made for another environment.
    """
    stored = StoredModel(path)
    _check_asked(path, stored, asked)
    if stored.compatibility.needs_library:
        open_library()
    _check_library(path, stored)
    return stored


def verify_prepared(path: FilePath) -> int:
    """Read all of a prepared model and verify its plans; return the bytes of its weights.

    Raises:
        FormatError: It is damaged, or a plan would corrupt memory.
    """
    stored = StoredModel(path)
    stored.verify()
    return sum({copy.offset_bytes: copy.weight.size_bytes for copy in stored.copies}.values())


def program_index(stored: StoredModel, asked: Asked) -> int:
    """Return the index of the program for the requested shapes and lengths, by default the first.

    Raises:
        InputError: It has none, or a name is neither an input's nor a dimension's.
    """
    wanted, named = _divided(stored, asked.shapes or {})
    declared = stored.dimensions or {}
    for index, key in enumerate(stored.keys):
        if wanted.items() <= dict(key).items() and (
            not named or named.items() <= lengths_of(declared, key).items()
        ):
            return index
    first = with_lengths(declared, stored.keys[0], named) if named else ()
    shapes = {**dict(first), **wanted}
    StoredShapes(stored, lambda _plan, _shapes: None).admit(tuple(shapes.items()))
    raise InputError(
        f"The lengths {_lengths_text(named)} are not those of the shapes given beside them; give "
        "one of both."
    )


def _divided(
    stored: StoredModel, given: Mapping[str, Sequence[int] | int]
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Divide what is given into shapes by input and lengths by dimension.

    The command line writes a length as a shape of one axis.

    Raises:
        InputError: A name is neither an input's nor a dimension's.
    """
    inputs = [name for name, _ in stored.keys[0]]
    shapes: dict[str, tuple[int, ...]] = {}
    named: dict[str, int] = {}
    for name, shape in given.items():
        plain = shape_or_length(shape)
        if isinstance(plain, int):
            named[name] = plain
        elif name in inputs:
            shapes[name] = plain
        elif len(plain) == 1:
            named[name] = plain[0]
        else:
            raise InputError(f"Unknown input `{name}`; the inputs are {', '.join(inputs)}.")
    _check_named(stored, inputs, named)
    return shapes, named


def _check_named(stored: StoredModel, inputs: Sequence[str], named: Mapping[str, int]) -> None:
    if not named:
        return
    name = next(iter(named))
    known = lengths_of(stored.dimensions, stored.keys[0]) if stored.dimensions is not None else {}
    for taken in inputs:
        if taken in named and taken not in known:
            raise InputError(
                f"Input `{taken}` was given the shape {named[taken]}; a shape is a list of whole "
                f"numbers, `[{named[taken]}]`, and no dimension has that name."
            )
    if stored.dimensions is None:
        raise InputError(
            f"Unknown input `{name}`; the inputs are {', '.join(inputs)}. `{stored.path}` has no "
            "names of dimensions, because an earlier version wrote it: give shapes by input, or "
            f"prepare it again, `{stored.command(stored.keys)}`, to give lengths by name."
        )
    for name in named:
        if name not in known:
            dimensions = ", ".join(known) or "none"
            raise InputError(
                f"Unknown input or dimension `{name}`; the inputs are {', '.join(inputs)}; named "
                f"dimensions: {dimensions}."
            )


def _lengths_text(named: Mapping[str, int]) -> str:
    return ", ".join(f"`{name}` {length}" for name, length in named.items())


def _check_asked(path: FilePath, stored: StoredModel, asked: Asked) -> None:
    made = stored.compatibility
    if made.version != VERSION:
        raise _stale(path, stored, f"Tightship {made.version}", f"Tightship {VERSION}")
    if asked.threads is not None and asked.threads != made.threads:
        raise _stale(path, stored, f"{made.threads} thread(s)", f"{asked.threads} asked for",
                     made._replace(threads=asked.threads))  # fmt: skip
    if asked.workers is not None and asked.workers != made.workers:
        raise _stale(path, stored, f"{made.workers} worker(s)", f"{asked.workers} asked for",
                     made._replace(workers=asked.workers))  # fmt: skip
    kind = "int8" if EXACT in asked.without else activations_of(made.without)
    passes = passes_of(asked.without) or passes_of(made.without)
    wanted = with_activations(passes, asked.activations or kind)
    of_products = precision_of((*asked.without, *(() if asked.precision else made.without)))
    wanted = with_precision(wanted, asked.precision or of_products)
    if activations_of(wanted) != activations_of(made.without):
        raise _stale(path, stored, f"activations of {activations_of(made.without)}",
                     f"{activations_of(wanted)} asked for",
                     made._replace(without=tuple(wanted)))  # fmt: skip
    if precision_of(wanted) != precision_of(made.without):
        raise _stale(path, stored, f"products of {precision_of(made.without)}",
                     f"{precision_of(wanted)} asked for",
                     made._replace(without=wanted))  # fmt: skip
    if passes != passes_of(made.without):
        raise _stale(path, stored, _left_out(made.without), _left_out(wanted),
                     made._replace(without=tuple(wanted)))  # fmt: skip


def _left_out(without: Collection[str]) -> str:
    return f"passes left out: {', '.join(passes_of(without)) or 'none'}"


def _check_library(path: FilePath, stored: StoredModel) -> None:
    made = stored.compatibility.library
    here = stored.compatibility.as_here().library
    if made != here:
        raise _stale(path, stored, _listed(made), _listed(here))


def _listed(key: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in key.items())


def _stale(
    path: FilePath,
    stored: StoredModel,
    made: str,
    here: str,
    wanted: Compatibility | None = None,
) -> FormatError:
    """Make the error for a file made for another environment, with the command to remake it."""
    command = stored.command(stored.keys, wanted)
    return FormatError(
        f"`{path}` was prepared for {made}; here it is {here}. Make it again: `{command}`."
    )
