"""Makes programs of a decoder's sessions, to be stored."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tightship.engine.activations import usual_cache
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.program.program import PackedWeight
from tightship.engine.state.cache_types import CacheType, chosen_type
from tightship.engine.state.decoder import TOKENS, Declared
from tightship.engine.state.digest import digest_of
from tightship.engine.state.encoder import encoder_shapes
from tightship.engine.stored.save import Steps
from tightship.engine.stored.sessions import choices_json
from tightship.engine.stored.steps import steps_json
from tightship.errors import InputError
from tightship.frontend.onnx import OnnxFile
from tightship.loading.input_shapes import divided
from tightship.loading.opening import is_open
from tightship.model.session_options import SessionOptions

if TYPE_CHECKING:
    from tightship.engine.state.decoder import Decoder
    from tightship.engine.state.step_choices import StepChoices
    from tightship.loading.opening import OpenedModel


def session_steps(
    source: "OpenedModel",
    settings: Settings,
    own: CompiledModel,
    known: dict[str, list[PackedWeight]],
    wanted: tuple[Sequence[int], int, CacheType | None],
) -> Iterator[Steps]:
    """Yield the programs of sessions for each context.

    Args:
        source: The model's file.
        settings: Settings of its own programs.
        own: The first of these; sessions have its batch.
        known: Weights that have a layout, by name; those of each program are added.
        wanted: Contexts, most tokens of a program, and type of the caches; None for the usual one.

    Raises:
        GraphError: The model cannot be planned for a whole context.
        InputError: The model is not a decoder with open lengths, or `wanted` does not fit it.
    """
    if not isinstance(source, OnnxFile) or not is_open(source.declared):
        raise InputError(
            f"Sessions need an ONNX file of a decoder whose number of tokens is open; `{own.name}` "
            "is not one. Leave `context` out."
        )
    contexts, chunk, asked = wanted
    inputs = own.placement.lowered.inputs
    batch = next((inputs[name].shape[0] for name in TOKENS if name in inputs), 1)
    extra = _encoder_shapes(source, settings, batch)
    declared = Declared.of(source.graph(None, allow_symbolic=True))
    cache = chosen_type(asked, usual_cache(settings.without), declared.types.values())
    for context in dict.fromkeys(contexts):
        plain = SessionOptions(context, batch, chunk, cache=cache).choices()
        choices = plain._replace(extra=extra)
        decoder = choices.decoder(source.graph, declared)
        about = steps_json(declared, choices.sizes, digest_of(decoder.file_graph(1)))
        programs = session_programs(decoder, choices, own.name, settings, known)
        yield Steps(choices_json(choices), about, programs)


def _encoder_shapes(
    source: OnnxFile, settings: Settings, batch: int
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return shapes of the inputs with an encoder's rows, of lengths that the caller gave.

    Raises:
        InputError: A length is missing.
    """
    shapes, lengths = divided(source.declared, settings.shapes or {})
    for name, shape in shapes.items():
        lengths |= dict(zip(map(str, source.declared[name] or ()), shape, strict=False))
    return tuple(sorted(encoder_shapes(source.declared, batch, lengths).items()))


def session_programs(
    decoder: "Decoder",
    choices: "StepChoices",
    name: str,
    settings: Settings,
    known: dict[str, list[PackedWeight]],
) -> Iterator[CompiledModel]:
    """Yield the program for each number of new tokens, the largest first, made when it is asked.

    Args:
        decoder: The decoder of `choices`.
        choices: Choices of the sessions.
        name: Name of the model in reports.
        settings: Settings of the model's own programs.
        known: Weights that have a layout, by name; those of each program are added.

    Raises:
        GraphError: The model cannot be planned for a whole context.
    """
    plain = replace(settings, shapes=None, choice=None)
    for steps in choices.sizes:
        compiled = prepare(decoder.graph(steps, last=choices.last), name, plain, known)
        add_known(known, compiled)
        yield compiled


def add_known(known: dict[str, list[PackedWeight]], compiled: CompiledModel) -> None:
    """Add the weights of a program to those that have a layout."""
    for weight in compiled.placement.lowered.weights:
        layouts = known.setdefault(weight.name, [])
        if not any(weight is each for each in layouts):
            layouts.append(weight)
