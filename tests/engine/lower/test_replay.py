"""Layers that are alike are lowered as they would be node by node.

Layers with products in NumPy, as with AVX2 alone, are lowered node by node.
"""

import functools

import numpy as np
import pytest

from tests.engine.graphs import graph_of
from tests.models import filled
from tests.processor import HAS_AVX512, needs_avx512
from tests.zoo.attention import TORCHSCRIPT, Heads
from tests.zoo.gpt2 import Size, gpt2, gpt2_decode
from tests.zoo.open_lengths import text
from tests.zoo.transformer import encoder
from tightship import _core
from tightship.engine.library import open_library
from tightship.engine.lower import replay
from tightship.engine.lower.selection import rewritten, select
from tightship.engine.lower.steps.alike_layers import alike_layers
from tightship.engine.program.program import NativeWork, PrimitiveWork, Space
from tightship.engine.template import template_of
from tightship.frontend.onnx import open_bytes, read_bytes

SIZE = Size(5, Heads(4, 16), 100, 64)
NETWORKS = {
    "gpt2": lambda: gpt2(1, 16, SIZE),
    "gpt2_decomposed": lambda: gpt2(1, 16, SIZE, TORCHSCRIPT),
    "gpt2_decode": lambda: gpt2_decode(1, 16, SIZE),
    "encoder": lambda: encoder(5, 64, 4, 16, decomposed=False, batch=2),
    "encoder_decomposed": lambda: encoder(5, 64, 4, 16, decomposed=True, batch=2),
}
PASSES = ((), ("in_place",), ("library_layouts",), ("stream_weights",), ("native",), ("onednn",))


@functools.cache
def graph(name, without):
    return rewritten(read_bytes(NETWORKS[name]().model), without)


@functools.cache
def template():
    opened = open_bytes(text(layers=6))
    return template_of(opened.graph({"ids": (1, 25)}), opened.declared, rewritten)


@pytest.fixture
def replayed(monkeypatch):
    """Layers, each with whether it was added again."""
    if _core.HAS_ONEDNN:
        open_library()
    found = []
    again = replay.Layer.again

    def told_again(model, layer):
        found.append((layer, again(model, layer)))
        return found[-1][1]

    monkeypatch.setattr(replay.Layer, "again", told_again)
    return found


def comparable(lowered):
    """All that a lowered program is, in a form that can be compared."""
    return (
        [_comparable_step(step) for step in lowered.steps],
        lowered.slots,
        [(w.name, w.size_bytes, w.source, w.desc, w.constant.shape) for w in lowered.weights],
        {name: tuple(operand) for name, operand in lowered.inputs.items()},
        {name: tuple(operand) for name, operand in lowered.outputs.items()},
    )


def _comparable_step(step):
    work = ()
    if isinstance(step.work, PrimitiveWork):
        work = step.work.desc.signature, *step.work.arguments
    if isinstance(step.work, NativeWork):
        work = step.work.operands
    return *step._replace(work=type(step.work)), work


@pytest.mark.parametrize("without", PASSES, ids=" ".join)
@pytest.mark.parametrize("name", NETWORKS)
def test_replayed_layers_are_those_of_lowering_each_node(name, without, replayed):
    small = graph(name, without)
    found = select(small, 1, without, {}, None, alike_layers(small))
    assert comparable(found) == comparable(select(small, 1, without, {}))
    if not {"onednn", "native"} & {*without}:
        assert any(is_added for _, is_added in replayed)


@pytest.mark.parametrize("length", [1, 7, 24, 40, 63])
def test_a_template_knows_its_layers_for_every_length(length, replayed):
    small = template().graph({"ids": (1, length)})
    if small is None:
        pytest.skip("another template is needed")
    found = select(small, 1, (), {}, None, template().repeats)
    assert comparable(found) == comparable(select(small, 1, (), {}))
    if HAS_AVX512:
        assert sum(is_added for _, is_added in replayed) >= 3


def test_what_programs_for_other_shapes_packed_is_taken_for_each_layer(replayed):
    first = select(template().graph({"ids": (1, 24)}), 1, (), {}, None, template().repeats)
    packed = {}
    for weight in first.weights:
        packed.setdefault(weight.name, []).append(weight)
    found = select(template().graph({"ids": (1, 40)}), 1, (), packed, None, template().repeats)
    before = {id(weight) for weight in first.weights}
    laid = [weight for weight in found.weights if weight.desc is not None]
    assert all(id(weight) in before for weight in laid)
    assert any(is_added for _, is_added in replayed)


@needs_avx512
def test_a_layer_whose_weights_are_packed_otherwise_is_lowered_node_by_node(replayed):
    small = template().graph({"ids": (1, 40)})
    names = [step.name for step in select(small, 1, (), {}).steps]
    weights = select(small, 1, (), {}).weights
    repeat = template().repeats[0]
    third = {repeat.values[2][place] for place in repeat.constants}
    packed = {w.name: [w] for w in weights if w.name not in third}
    replayed.clear()
    found = select(small, 1, (), packed, None, template().repeats)
    assert (2, False) in replayed
    assert [step.name for step in found.steps] == names


CHAIN = """chain (float[2, 8] x) => (float[2, 8] z) {
    a1 = MatMul (x, w1)   b1 = Tanh (a1)   c1 = Add (b1, x)
    a2 = MatMul (c1, w2)  b2 = Tanh (a2)   c2 = Add (b2, c1)
    a3 = MatMul (c2, w3)  b3 = Tanh (a3)   c3 = Add (b3, c2)
    a4 = MatMul (c3, w4)  b4 = Tanh (a4)   c4 = Add (b4, c3)
    z = Sigmoid (c4)
}"""


def test_layers_write_slots_and_read_weights_of_their_own(replayed):
    small = graph_of(CHAIN, **{f"w{n}": filled(8, 8) for n in (1, 2, 3, 4)})
    lowered = select(small, 1, (), None, None, alike_layers(small))
    written = [o.slot for s in lowered.steps for o in s.writes if o.space is Space.ARENA]
    assert len(set(written)) == len(written)
    weights = [o.name for s in lowered.steps for o in s.reads if o.space is Space.WEIGHTS]
    assert weights == ["w1", "w2", "w3", "w4"]
    assert any(is_added for _, is_added in replayed)


def stacked(head, layer, tail, shape="2, 8"):
    """Four layers, each written with its number and that of the one before."""
    layers = "\n".join(layer.replace("@", str(n)).replace("~", str(n - 1)) for n in (1, 2, 3, 4))
    return f"stacked (float[{shape}] x) => (float[{shape}] z) {{ {head} {layers} {tail} }}"


IMAGE = "1, 16, 6, 6"
CONV = "Conv <pads = [1, 1, 1, 1]>"
UNEVEN = {
    "the first layer's operand lives on under another name": stacked(
        "base = Sigmoid (x)  c0 = Flatten (base)",
        "a@ = Tanh (c~)  c@ = Add (c~, a@)",
        "z = Add (c4, base)",
    ),
    "what enters the first layer lies in another layout": stacked(
        "c0 = Erf (x)", f"c@ = {CONV} (c~, w)", "z = Sigmoid (c4)", IMAGE
    ),
    "all layers read one copy of a value in another layout": stacked(
        f"m = Erf (x)  c0 = {CONV} (x, w)",
        f"a@ = {CONV} (c~, w)  b@ = {CONV} (m, w)  c@ = Add (a@, b@)",
        "z = Sigmoid (c4)",
        IMAGE,
    ),
    "two operands are one but in the first layer": stacked(
        "c0 = Sigmoid (x)  d0 = Tanh (x)",
        "a@ = Add (c~, d~)  b@ = Tanh (a@)  c@ = Flatten (b@)  d@ = Flatten (b@)",
        "z = Add (c4, d4)",
    ),
    "a copy that one layer makes is read by the next": stacked(
        "c0 = Erf (x)  d0 = Erf (c0)",
        f"a@ = {CONV} (c~, w)  b@ = Add (a@, d~)  c@ = CumSum (b@, axis)  d@ = {CONV} (c@, w)",
        "z = Add (c4, d4)",
        IMAGE,
    ),
    "a view that one layer makes keeps what it shows": stacked(
        "c0 = Sigmoid (x)  d0 = Flatten (c0)",
        "a@ = Tanh (c~)  b@ = Mul (a@, d~)  c@ = Sigmoid (b@)  d@ = Flatten (c@)",
        "z = Add (c4, d4)",
    ),
}


@pytest.mark.parametrize("case", UNEVEN)
def test_layers_are_right_where(case, replayed):
    weights = {"w": filled(16, 16, 3, 3), "axis": np.array(1)}
    used = {name: weight for name, weight in weights.items() if f" {name})" in UNEVEN[case]}
    small = graph_of(UNEVEN[case], **used)
    repeats = alike_layers(small)
    assert [len(repeat.values) for repeat in repeats] == [3]
    assert comparable(select(small, 1, (), {}, None, repeats)) == comparable(
        select(small, 1, (), {})
    )
    assert not _core.HAS_ONEDNN or replayed
