"""Small valid graphs, written at random: values read twice, views, outputs that are inputs."""

import math
from collections.abc import Callable
from random import Random

import numpy as np

from tests.zoo.net import Case, Net

Shape = tuple[int, ...]

ACTIVATIONS = (
    "Relu", "Sigmoid", "Tanh", "Abs", "Neg", "HardSwish", "Elu", "LeakyRelu", "Softplus", "Mish",
    "HardSigmoid", "Gelu", "Identity", "Erf", "Exp",
)  # fmt: skip
LARGEST = 20_000
"""Elements of a value; nothing larger is made."""


class Writer:
    """A graph being grown: every step reads values chosen from all there are."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.net = Net(random.randrange(1000))
        self.shapes: dict[str, Shape] = {}
        self.constants: list[str] = []
        self.inputs: list[str] = []
        for index in range(random.randint(1, 2)):
            name = f"x{index}"
            shape = random.choice(((1, 17, 6, 6), (2, 16, 5, 5), (1, 8, 7, 4), (2, 3, 8), (4, 12)))
            self.inputs.append(self.net.normal(name, *shape))
            self.shapes[name] = shape

    def keep(self, name: str, shape: Shape) -> None:
        """A value that later steps may read."""
        self.shapes[name] = tuple(shape)

    def pick(self, fits: Callable[[Shape], bool] = lambda _: True) -> str | None:
        """A value whose shape fits; late ones are likelier, so that chains form."""
        names = [name for name, shape in self.shapes.items() if fits(shape)]
        if not names:
            return None
        return names[-1] if self.random.random() < 0.5 else self.random.choice(names)

    def step(self) -> None:
        """One operator, or none where no value fits it."""
        STEPS[self.random.randrange(len(STEPS))](self)

    def case(self) -> Case:
        """The graph with some of its values as outputs."""
        names = [name for name in self.shapes if name not in self.inputs]
        chosen = set(self.random.sample(names, min(len(names), self.random.randint(0, 3))))
        last = list(self.shapes)[-1]
        chosen.add(last)
        if self.random.random() < 0.1 and self.inputs[0] != last:
            chosen.add(self.inputs[0])
        self.net.output(*sorted(chosen))
        if self.constants and self.random.random() < 0.2:
            self.net.output(self.random.choice(self.constants))
        return self.net.case()


def random_case(random: Random, steps: int) -> Case:
    """A graph of at most `steps` random steps."""
    writer = Writer(random)
    for _ in range(steps):
        writer.step()
    return writer.case()


def _activation(w: Writer) -> None:
    name = w.pick()
    if name is not None:
        w.keep(w.net(w.random.choice(ACTIVATIONS), name), w.shapes[name])


def _bounded(w: Writer) -> None:
    name = w.pick()
    if name is not None:
        low = w.net.scalar(-1) if w.random.random() < 0.8 else ""
        high = w.net.scalar(1.5) if not low or w.random.random() < 0.8 else ""
        w.keep(w.net("Clip", name, low, high), w.shapes[name])


def _binary(w: Writer) -> None:
    left = w.pick()
    if left is None:
        return
    shape = w.shapes[left]
    right = w.pick(lambda other: other == shape)
    if right is None or w.random.random() < 0.15:
        right = left
    names = [left, right]
    w.random.shuffle(names)
    operator = w.random.choice(("Add", "Add", "Add", "Mul", "Sub", "Max", "Min"))
    w.keep(w.net(operator, *names), shape)


def _broadcast(w: Writer) -> None:
    """Write a binary node with a constant, or a value of fewer elements, on either side."""
    left = w.pick(lambda shape: len(shape) > 0)
    if left is None:
        return
    shape = w.shapes[left]
    if w.random.random() < 0.5:
        small = tuple(d if w.random.random() < 0.5 else 1 for d in shape)
        small = small[w.random.randint(0, len(shape)) :]
        right = w.net.bias(*small) if w.random.random() < 0.7 else w.net.positive(*small)
        w.constants.append(right)
    else:
        found = w.pick(lambda other: _fits(other, shape))
        if found is None:
            return
        right = found
    names = [left, right]
    w.random.shuffle(names)
    w.keep(w.net(w.random.choice(("Add", "Mul", "Sub", "Max")), *names), shape)


def _fits(small: Shape, shape: Shape) -> bool:
    pairs = zip(small[::-1], shape[::-1], strict=False)
    return len(small) <= len(shape) and all(a in (1, b) for a, b in pairs)


def _divide(w: Writer) -> None:
    name = w.pick()
    if name is not None:
        divisor = w.net.scalar(w.random.choice((2.0, -0.5)))
        w.keep(w.net("Div", name, divisor), w.shapes[name])


def _sum(w: Writer) -> None:
    name = w.pick()
    if name is not None:
        shape = w.shapes[name]
        names = [w.pick(lambda other: other == shape) or name for _ in range(2)]
        w.keep(w.net("Sum", name, *names), shape)


def _where(w: Writer) -> None:
    left = w.pick(lambda shape: math.prod(shape) > 0)
    if left is not None:
        shape = w.shapes[left]
        right = w.pick(lambda other: other == shape) or left
        mask = w.net.constant(w.net.random.random(shape) < 0.5)
        w.keep(w.net("Where", mask, left, right), shape)


def _convolution(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) in (3, 4) and min(shape) > 0)
    if name is None:
        return
    batch, channels, *space = w.shapes[name]
    groups = [g for g in (1, 1, 2, 4, channels) if channels % g == 0]
    group = w.random.choice(groups)
    after = w.random.choice([n for n in (3, 8, 16, 17, 32, channels) if n % group == 0])
    kernel, stride = w.random.choice((1, 3)), w.random.choice((1, 1, 2))
    weight = w.net.weight(after, channels // group, *[kernel] * len(space))
    bias = [w.net.bias(after)] if w.random.random() < 0.7 else []
    y = w.net("Conv", name, weight, *bias, group=group, strides=[stride] * len(space),
              pads=[kernel // 2] * 2 * len(space))  # fmt: skip
    w.keep(y, (batch, after, *((d - 1) // stride + 1 for d in space)))


def _residual(w: Writer) -> None:
    """A convolution that keeps its shape, joined with values of that shape, one after another."""
    name = w.pick(lambda shape: len(shape) == 4 and min(shape) > 0)
    if name is None:
        return
    shape = w.shapes[name]
    y = w.net("Conv", name, w.net.weight(shape[1], shape[1], 1, 1))
    for _ in range(w.random.randint(1, 3)):
        if w.random.random() < 0.3:
            y = w.net("Relu", y)
            continue
        other = w.pick(lambda candidate: candidate == shape) or name
        pair = [y, other] if w.random.random() < 0.5 else [other, y]
        y = w.net(w.random.choice(("Add", "Add", "Mul", "Sub")), *pair)
    w.keep(y, shape)


def _normalization(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 2 and min(shape) > 0)
    if name is not None:
        n = w.shapes[name][1]
        parameters = (w.net.positive(n), w.net.bias(n), w.net.bias(n), w.net.positive(n))
        w.keep(w.net("BatchNormalization", name, *parameters), w.shapes[name])


def _layer_norm(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1 and min(shape) > 0 and shape[-1] > 2)
    if name is not None:
        n = w.shapes[name][-1]
        parameters = (w.net.positive(n), w.net.bias(n))
        y = w.net("LayerNormalization", name, *parameters, epsilon=0.1)
        w.keep(y, w.shapes[name])


def _softmax(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1 and min(shape) > 0)
    if name is not None:
        axis = w.random.randrange(len(w.shapes[name]))
        operator = w.random.choice(("Softmax", "LogSoftmax"))
        w.keep(w.net(operator, name, axis=axis), w.shapes[name])


def _concat(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1)
    if name is None:
        return
    shape = w.shapes[name]
    axis = w.random.randrange(len(shape))

    def fits(other: Shape) -> bool:
        return len(other) == len(shape) and all(
            a == b for i, (a, b) in enumerate(zip(other, shape, strict=True)) if i != axis
        )

    names = [name, *(w.pick(fits) or name for _ in range(w.random.randint(1, 2)))]
    w.random.shuffle(names)
    length = sum(w.shapes[n][axis] for n in names)
    after = (*shape[:axis], length, *shape[axis + 1 :])
    if math.prod(after) <= LARGEST:
        w.keep(w.net("Concat", *names, axis=axis), after)


def _split(w: Writer) -> None:
    name = w.pick(lambda shape: any(d > 1 for d in shape))
    if name is None:
        return
    shape = w.shapes[name]
    axis = w.random.choice([i for i, d in enumerate(shape) if d > 1])
    first = w.random.randint(1, shape[axis] - 1)
    parts = (first, shape[axis] - first)
    for y, part in zip(
        w.net.many("Split", 2, name, w.net.ints(*parts), axis=axis), parts, strict=True
    ):
        w.keep(y, (*shape[:axis], part, *shape[axis + 1 :]))


def _slice(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1 and min(shape) > 0)
    if name is None:
        return
    shape = w.shapes[name]
    axis = w.random.randrange(len(shape))
    start = w.random.randint(0, shape[axis] - 1)
    stop = w.random.randint(start, shape[axis]) if w.random.random() < 0.2 else shape[axis]
    y = w.net("Slice", name, w.net.ints(start), w.net.ints(stop), w.net.ints(axis))
    w.keep(y, (*shape[:axis], stop - start, *shape[axis + 1 :]))


def _pad(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1 and 0 < math.prod(shape) < LARGEST // 8)
    if name is not None:
        shape = w.shapes[name]
        pads = [w.random.randint(0, 1) for _ in range(2 * len(shape))]
        after = [d + pads[i] + pads[i + len(shape)] for i, d in enumerate(shape)]
        w.keep(w.net("Pad", name, w.net.ints(*pads)), tuple(after))


def _pool(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) in (3, 4) and min(shape) > 0)
    if name is None:
        return
    batch, channels, *space = w.shapes[name]
    if w.random.random() < 0.3:
        y = w.net(w.random.choice(("GlobalAveragePool", "GlobalMaxPool")), name)
        w.keep(y, (batch, channels, *[1] * len(space)))
        return
    operator = w.random.choice(("MaxPool", "AveragePool"))
    stride = w.random.choice((1, 2))
    y = w.net(operator, name, kernel_shape=[3] * len(space), strides=[stride] * len(space),
              pads=[1] * 2 * len(space))  # fmt: skip
    w.keep(y, (batch, channels, *((d - 1) // stride + 1 for d in space)))


def _reshape(w: Writer) -> None:
    name = w.pick()
    if name is None:
        return
    shape = w.shapes[name]
    count = math.prod(shape)
    choices: list[Shape] = [(count,), (1, *shape), (*shape, 1)]
    if len(shape) > 1:
        choices.append((shape[0] * shape[1], *shape[2:]))
        choices.append((*shape[:-2], shape[-1], shape[-2]))
    if shape and shape[0] % 2 == 0 and shape[0]:
        choices.append((2, shape[0] // 2, *shape[1:]))
    after = w.random.choice([c for c in choices if len(c) <= 6])
    w.keep(w.net("Reshape", name, w.net.ints(*after), allowzero=1), after)


def _transpose(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) > 0)
    if name is not None:
        shape = w.shapes[name]
        perm = list(range(len(shape)))
        w.random.shuffle(perm)
        w.keep(w.net("Transpose", name, perm=perm), tuple(shape[i] for i in perm))


def _flatten(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1)
    if name is not None:
        shape = w.shapes[name]
        w.keep(w.net("Flatten", name, axis=1), (shape[0], math.prod(shape[1:])))


def _matmul(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 2 and 0 < shape[-1] < 400 and min(shape) > 0)
    if name is not None:
        shape = w.shapes[name]
        y = w.net("MatMul", name, w.net.weight(shape[-1], 9, fan_in=shape[-1]))
        if w.random.random() < 0.6:
            y = w.net("Add", y, w.net.bias(9))
        w.keep(y, (*shape[:-1], 9))


def _product(w: Writer) -> None:
    """A value times another, or itself, transposed."""
    name = w.pick(lambda shape: len(shape) >= 2 and min(shape) > 0)
    if name is None:
        return
    shape = w.shapes[name]
    other = w.pick(lambda candidate: candidate == shape) or name
    perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    after = (*shape[:-1], shape[-2])
    if math.prod(after) <= LARGEST:
        y = w.net("MatMul", name, w.net("Transpose", other, perm=perm))
        w.keep(w.net("Mul", y, w.net.scalar(1 / math.sqrt(shape[-1]))), after)


def _gemm(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) == 2 and min(shape) > 0 and shape[1] < 400)
    if name is not None:
        rows, depth = w.shapes[name]
        transposed = w.random.randint(0, 1)
        weight = w.net.weight(*((7, depth) if transposed else (depth, 7)), fan_in=depth)
        y = w.net("Gemm", name, weight, w.net.bias(7), transB=transposed)
        w.keep(y, (rows, 7))


def _reduce(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1 and min(shape) > 0)
    if name is not None:
        shape = w.shapes[name]
        kept = w.random.randint(0, 1)
        if w.random.random() < 0.3:
            y = w.net("ReduceMean", name, keepdims=kept)
            w.keep(y, (1,) * len(shape) if kept else ())
            return
        axis = w.random.randrange(len(shape))
        operator = w.random.choice(("ReduceMean", "ReduceMax"))
        y = w.net(operator, name, w.net.ints(axis), keepdims=kept)
        w.keep(y, (*shape[:axis], *[1] * kept, *shape[axis + 1 :]))


def _gather(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) >= 1 and min(shape) > 0)
    if name is not None:
        shape = w.shapes[name]
        axis = w.random.randrange(len(shape))
        places = [w.random.randrange(shape[axis]) for _ in range(2)]
        y = w.net("Gather", name, w.net.constant(np.array(places)), axis=axis)
        w.keep(y, (*shape[:axis], 2, *shape[axis + 1 :]))


STEPS: tuple[Callable[[Writer], None], ...] = (
    _activation, _activation, _bounded, _binary, _binary, _binary, _broadcast, _broadcast, _divide,
    _sum, _where, _convolution, _convolution, _residual, _residual, _normalization, _layer_norm,
    _softmax, _concat, _concat, _split, _slice, _pad, _pool, _reshape, _transpose, _flatten,
    _matmul, _product, _gemm, _reduce, _gather,
)  # fmt: skip
