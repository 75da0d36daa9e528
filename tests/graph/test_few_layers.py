"""Programs of decoders of whose equal layers few went through the passes."""

import pytest

from tests.frontend.gguf.decoders import Model, decoder
from tests.frontend.gguf.written import random_blocks
from tightship.engine.activations import EXACT
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.program.program import NativeWork, Operand
from tightship.engine.state.cache_types import CacheType
from tightship.engine.state.decoder import Declared
from tightship.engine.stored.recipes import recording
from tightship.frontend.gguf.architectures import ARCHITECTURES
from tightship.frontend.gguf.file import open_bytes
from tightship.model.session_options import SessionOptions

CONTEXT = 64
USUAL = Settings(threads=2)


def facts(compiled: CompiledModel) -> list[object]:
    """Return all that a program does and takes, but for names of constants."""
    placement = compiled.placement
    lowered, plan = placement.lowered, placement.schedule_plan

    def of(operand: Operand) -> tuple[object, ...]:
        offset = plan.value_offset(operand.slot) if operand.space.value == "arena" else None
        return (operand.space, operand.slot, operand.dtype, operand.shape, repr(operand.desc),
                operand.offset_bytes, offset)  # fmt: skip

    steps = []
    for step in lowered.steps:
        recipe = step.work.kernel.recipe if isinstance(step.work, NativeWork) else b""
        steps.append(
            (
                step.name,
                step.operator,
                step.implementation,
                recipe,
                step.scratch_bytes,
                tuple(map(of, step.reads)),
                tuple(map(of, step.writes)),
                step.sharing,
            )
        )
    weights = [(w.size_bytes, repr(w.desc), w.constant.array().tobytes()) for w in lowered.weights]
    slots = [(slot.size_bytes, slot.external) for slot in lowered.slots]
    return [steps, weights, slots, placement.arena_bytes, [*lowered.inputs], [*lowered.outputs]]


def check(model: Model, cache: CacheType | None = None, settings: Settings = USUAL) -> None:
    file = open_bytes(model.written())
    declared = Declared.of(file.graph(None, allow_symbolic=True))
    choices = SessionOptions(CONTEXT, chunk=16, cache=cache).choices()
    decoder_ = choices.decoder(file.graph, declared)
    for steps in (16, 4, 1):
        with recording():
            found, wanted = (
                prepare(decoder_.graph(steps, last=True, few=few), "m", settings, {})
                for few in (True, False)
            )
        for one, other in zip(facts(found), facts(wanted), strict=True):
            assert one == other


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("cache", [None, "int8"])
def test_a_program_is_that_of_all_layers(kind: str, cache: CacheType | None) -> None:
    check(decoder(kind, "Q8_0", layers=5), cache)


@pytest.mark.parametrize("type_", ["Q4_0", "Q4_1", "Q6_K", "F16", "BF16", "F32"])
def test_weights_are_those_of_each_layer(type_: str) -> None:
    check(decoder("llama", type_, layers=5))


def test_layers_of_several_kinds_take_turns() -> None:
    mixed = decoder("llama", "Q4_1", layers=7)
    for layer in (1, 3, 4):
        mixed.tensors[f"blk.{layer}.ffn_up.weight"] = random_blocks("Q8_0", 96, 64, layer)
    check(mixed)
    check(decoder("gemma3", "Q8_0", layers=13, **{"attention.sliding_window": 4}))
    check(decoder("llama", "Q4_0", layers=5), settings=Settings(without=(EXACT,)))
