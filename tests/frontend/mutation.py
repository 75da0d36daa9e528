"""Models with a few of their bytes or fields changed, read one after another.

Run as `python -m tests.frontend.mutation KIND SEED COUNT`; what escapes as another error than
ours, hangs, or kills the process is identified by the exit status and the last seed printed.
"""

import random
import resource
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, numpy_helper

from tests import models
from tests.zoo import light
from tightship.errors import TightshipError
from tightship.frontend.onnx import read_bytes

SECONDS_MAX = 20
DATA_BYTES_MAX = 2 << 30
INTEGERS = (
    *range(-3, 14), 16, 64, 255, 4096, 4097, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1,
)  # fmt: skip
NAMES = ("", "Add", "If", "Loop", "Constant", "Reshape", "Identity", "ai.onnx.ml", "batch", "x")


def small_models() -> list[ModelProto]:
    """Models with subgraphs, functions, and tensors in every field."""
    functions = models.parse(
        """g (bool c, float[2] x) => (float[2] y) { y = mine.F <k = 1> (c, x) }
        <domain: "mine", opset_import: ["": 20]>
        F <k: int = 0> (c, a) => (b) {
            t = Unsqueeze (a, z)
            s = Squeeze (t)
            z = Constant <value_ints = [0]> ()
            b = If (c) <then_branch = l () => (p) { p = Add (s, a) },
                        else_branch = r () => (q) { q = Softmax <axis: int = @k> (a) }>
        }""",
        '<ir_version: 10, opset_import: ["": 20, "mine": 1]>',
    )
    tensors = models.parse("t (float[1] x) => (float[1] y) { y = Neg (x) }")
    for index, dtype in enumerate(("float32", "int64", "uint8", "float64", "bool", "complex64")):
        for size in (3, 700):
            array = np.arange(size).astype(dtype)
            tensors.graph.initializer.append(numpy_helper.from_array(array, f"r{index}_{size}"))
            typed = models.onnx.helper.make_tensor(
                f"t{index}_{size}", tensors.graph.initializer[-1].data_type, [size], array
            )
            tensors.graph.initializer.append(typed)
    scan = models.parse(
        """g (float[4] s, float[7, 4] x) => (float[4] last, float[4, 7] all) {
            last, all = Scan <num_scan_inputs = 1, scan_output_axes = [-1],
                body = b (float[4] p, float[4] e) => (float[4] q, float[4] r) {
                    q = Add (p, e) r = Identity (q) }> (s, x)
        }"""
    )
    own = [models.mlp(), models.conv_net(), models.if_model(), models.loop_model()]
    return [*own, functions, tensors, scan]


def with_bytes_changed(raw: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, removed, repeated or added."""
    out = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        place, kind = rng.randrange(len(out) + 1), rng.randrange(5)
        if kind == 0:
            out[place : place + 1] = rng.randbytes(1)
        elif kind == 1:
            del out[place : place + rng.randrange(1, 9)]
        elif kind == 2:
            out[place:place] = rng.randbytes(rng.randrange(1, 6))
        elif kind == 3:
            start = rng.randrange(len(out) + 1)
            out[place : place + 40] = out[start : start + rng.randrange(40)]
        elif rng.random() < 0.2:
            del out[place:]
    return bytes(out)


def with_fields_changed(raw: bytes, rng: random.Random) -> bytes:
    """A few fields set to something else, cleared, removed, repeated or turned around."""
    model = ModelProto.FromString(raw)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        message = rng.choice(_messages(model)[1:] or [model])
        present = [field for field, _ in message.ListFields()]
        every = list(message.DESCRIPTOR.fields)
        field = rng.choice(every if rng.random() < 0.3 or not present else present)
        if field.is_repeated:
            _change_list(message, field, rng)
        elif rng.random() < 0.2:
            message.ClearField(field.name)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            getattr(message, field.name).SetInParent()
        else:
            setattr(message, field.name, _value(field, rng))
    return model.SerializeToString()


def _messages(message: Message) -> list[Message]:
    found = [message]
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                found.extend(_messages(inner))
    return found


def _change_list(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    elements, kind = getattr(message, field.name), rng.randrange(3)
    if kind == 0 and len(elements):
        del elements[rng.randrange(len(elements))]
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if kind == 1 and len(elements):
            elements.append(rng.choice(elements))
        elif len(elements) > 1:
            elements.reverse()
    elif kind == 1 and len(elements):
        elements[rng.randrange(len(elements))] = _value(field, rng)
    else:
        elements.append(_value(field, rng))


def _value(field: FieldDescriptor, rng: random.Random) -> str | bytes | float | int:
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(NAMES)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.randbytes(rng.randrange(20))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice((0.0, 1.0, -1.0, float("nan"), float("inf")))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return int(rng.choice(field.enum_type.values).number)
    number = rng.choice(INTEGERS)
    if field.type == FieldDescriptor.TYPE_UINT64:
        return abs(number)
    return number if field.type == FieldDescriptor.TYPE_INT64 else min(number, (1 << 31) - 1)


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bytes": with_bytes_changed,
    "fields": with_fields_changed,
}


def read_mutants(kind: str, seed: int, count: int, originals: Sequence[bytes]) -> Counter[str]:
    """Count how many mutants were read, and how many refused, by class of the error."""
    outcomes: Counter[str] = Counter()
    for index in range(seed, seed + count):
        rng = random.Random(index)
        mutant = KINDS[kind](rng.choice(originals), rng)
        sys.stdout.write(f"\r{kind} {index}")
        sys.stdout.flush()
        signal.alarm(SECONDS_MAX)
        try:
            graph = read_bytes(mutant, allow_symbolic=rng.random() < 0.8)
            for constant in graph.constants.values():
                if all(length < 10_000 for length in constant.shape):
                    constant.array()
            outcomes["read"] += 1
        except TightshipError as error:
            outcomes[type(error).__name__] += 1
    return outcomes


def main(kind: str, seed: str, count: str) -> None:
    """Read mutants with bounded memory and time."""
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))
    originals = [model.SerializeToString() for model in small_models()]
    originals.append(light.path_of("bvlc_alexnet").read_bytes())
    originals.append(light.path_of("squeezenet").read_bytes())
    outcomes = read_mutants(kind, int(seed), int(count), originals)
    sys.stdout.write(f"\n{dict(outcomes)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
