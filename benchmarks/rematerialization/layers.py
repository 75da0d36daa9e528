"""Training steps with one node per layer, forward and back, as papers on recomputation have them.

A node writes one value. The gradient node of a layer reads the gradients of what the layer's
readers read, the layer's inputs, and its output where the derivative needs it; it writes the
gradient of its inputs and costs twice the layer. Weights, their gradients and the images lie
outside. Costs are multiplications and additions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tightship.planner import Schedule, ScheduledValue, Step

FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Work:
    """Nodes in an order in which they can run.

    Attributes:
        names: Name of each node.
        sizes: Bytes of its value.
        costs: Operations of running it.
        reads: Nodes whose values it reads.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    costs: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self.sizes)

    @property
    def operations(self) -> int:
        """Operations of running every node once."""
        return sum(self.costs)

    def readers(self) -> list[list[int]]:
        """Return the nodes that read each node's value."""
        found: list[list[int]] = [[] for _ in self.sizes]
        for node, reads in enumerate(self.reads):
            for read in reads:
                found[read].append(node)
        return found

    def peak_bytes(self) -> int:
        """Return the most live bytes in the order given, without recomputation."""
        last = [max([node, *readers]) for node, readers in enumerate(self.readers())]
        return max(
            sum(self.sizes[other] for other in range(node + 1) if last[other] >= node)
            for node in range(self.count)
        )

    def schedule(self) -> Schedule:
        """Return the same as a schedule without aliases; the last node's value is its output."""
        values = [
            ScheduledValue(name, size) for name, size in zip(self.names, self.sizes, strict=True)
        ]
        steps = [
            Step(name, "Layer", reads, (node,))
            for node, (name, reads) in enumerate(zip(self.names, self.reads, strict=True))
        ]
        return Schedule(tuple(values), tuple(steps), (self.count - 1,))


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer forward: the shape of its output, its operations, and the layers that it reads."""

    name: str
    shape: tuple[int, ...]
    operations: int
    inputs: tuple[int, ...]
    reads_output: bool
    is_sum: bool


class Layers:
    """Layers of a network; a method adds one and returns its number."""

    def __init__(self, batch: int) -> None:
        """Begin with the images or texts of a batch, which lie outside."""
        self._batch = batch
        self._layers: list[Layer] = []

    def add(
        self,
        inputs: Sequence[int],
        shape: tuple[int, ...],
        operations: int,
        *,
        reads_output: bool = True,
        is_sum: bool = False,
    ) -> int:
        """Add a layer; shape and operations are those of one sample."""
        number = len(self._layers)
        name = f"layer{number}"
        self._layers.append(Layer(name, shape, operations, tuple(inputs), reads_output, is_sum))
        return number

    def convolution(
        self, x: int | None, channels: int, size: tuple[int, int], window: int = 3, groups: int = 1
    ) -> int:
        """Add a convolution with its activation; `size` is the output's height and width."""
        depth = 3 if x is None else self._layers[x].shape[0]
        operations = 2 * channels * prod(size) * depth // groups * window**2
        return self.add([] if x is None else [x], (channels, *size), operations)

    def pool(self, x: int) -> int:
        """Add a maximum over windows of 2 x 2."""
        channels, height, width = self._layers[x].shape
        shape = channels, height // 2, width // 2
        return self.add([x], shape, 4 * prod(shape))

    def product(self, x: int, width: int) -> int:
        """Add a dense layer over all elements of a sample."""
        depth = prod(self._layers[x].shape)
        return self.add([x], (width,), 2 * depth * width)

    def sum(self, x: int, y: int) -> int:
        """Add two values; the gradient of both is the gradient of the sum."""
        shape = self._layers[x].shape
        return self.add([x, y], shape, prod(shape), reads_output=False, is_sum=True)

    def join(self, x: int, y: int) -> int:
        """Join two values along channels."""
        (one, *size), (other, *_) = self._layers[x].shape, self._layers[y].shape
        return self.add([x, y], (one + other, *size), prod((one + other, *size)))

    def size(self, x: int) -> tuple[int, int]:
        """Return a layer's height and width."""
        _, height, width = self._layers[x].shape
        return height, width

    def step(self) -> Work:
        """Return the training step: all layers, a loss, and a gradient node for each layer."""
        layers, count = self._layers, len(self._layers)
        sizes = [self._bytes(prod(layer.shape)) for layer in layers]
        names = [layer.name for layer in layers]
        costs = [max(1, self._batch * layer.operations) for layer in layers]
        reads = [layer.inputs for layer in layers]
        names.append("loss")
        sizes.append(sizes[-1])
        costs.append(self._batch * prod(layers[-1].shape))
        reads.append((count - 1,))
        gradient = {count - 1: count}
        readers: list[list[int]] = [[] for _ in layers]
        for number, layer in enumerate(layers):
            for each in layer.inputs:
                readers[each].append(number)
        for number in reversed(range(count)):
            layer = layers[number]
            arriving = [gradient[each] for each in readers[number]] or [count]
            needs = () if layer.is_sum else layer.inputs
            own = (number,) if layer.reads_output else ()
            gradient[number] = len(names)
            names.append(f"d({layer.name})")
            made = layer.inputs[:1] if layer.is_sum else layer.inputs
            sizes.append(max(64, sum(sizes[each] for each in made)))
            costs.append(2 * costs[number])
            reads.append(tuple(dict.fromkeys((*arriving, *needs, *own))))
        return Work(tuple(names), tuple(sizes), tuple(costs), tuple(reads))

    def _bytes(self, elements: int) -> int:
        return max(64, self._batch * elements * FLOAT_BYTES)


def chain(length: int) -> Work:
    """Products of 512 x 512 with Tanh, one node a layer; each value is 1 MiB."""
    made, x = Layers(1), None
    for _ in range(length):
        operations = 2 * 512**3 + 512**2
        x = made.add([] if x is None else [x], (512, 512), operations)
    return made.step()


def residual(length: int) -> Work:
    """The same, with a sum around each layer."""
    made = Layers(1)
    x = made.add([], (512, 512), 2 * 512**3 + 512**2)
    for _ in range(length):
        x = made.sum(x, made.add([x], (512, 512), 2 * 512**3 + 512**2))
    return made.step()


def vgg16(batch: int = 256) -> Work:
    """VGG-16 (Simonyan and Zisserman 2014) at 224 x 224."""
    made, x, size = Layers(batch), None, 224
    for channels, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(depth):
            x = made.convolution(x, channels, (size, size))
        assert x is not None
        x, size = made.pool(x), size // 2
    assert x is not None
    for width in (4096, 4096, 1000):
        x = made.product(x, width)
    return made.step()


def mobilenet(batch: int = 512) -> Work:
    """MobileNet (Howard and others 2017) at 224 x 224: by channel, then by pixel."""
    made, size = Layers(batch), 112
    x = made.convolution(None, 32, (size, size))
    strides = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2))
    for channels, stride in (*strides, *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        size //= stride
        depth = 32 if channels == 64 else channels // (2 if stride == 2 else 1)
        x = made.convolution(x, depth, (size, size), groups=depth)
        x = made.convolution(x, channels, (size, size), window=1)
    x = made.add([x], (1024,), 1024 * size**2)
    made.product(x, 1000)
    return made.step()


def unet(batch: int = 32) -> Work:
    """U-Net (Ronneberger and others 2015) with padded convolutions, at 416 x 608."""
    made, x, size = Layers(batch), None, (416, 608)
    across: list[int] = []
    for channels in (64, 128, 256, 512, 1024):
        for _ in range(2):
            x = made.convolution(x, channels, size)
        assert x is not None
        if channels < 1024:
            across.append(x)
            x, size = made.pool(x), (size[0] // 2, size[1] // 2)
    assert x is not None
    for channels in (512, 256, 128, 64):
        size = size[0] * 2, size[1] * 2
        x = made.join(across.pop(), made.convolution(x, channels, size, window=2))
        for _ in range(2):
            x = made.convolution(x, channels, size)
    made.convolution(x, 2, size, window=1)
    return made.step()


def resnet50(batch: int = 32) -> Work:
    """ResNet-50 (He and others 2015) at 224 x 224, a node for a convolution with its scaling."""
    made, size = Layers(batch), 56
    x = made.pool(made.convolution(None, 64, (112, 112), window=7))
    for stage, depth in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        size = 56 >> stage
        for block in range(depth):
            y = made.convolution(x, width, made.size(x), window=1)
            y = made.convolution(y, width, (size, size))
            y = made.convolution(y, 4 * width, (size, size), window=1)
            short = x if block else made.convolution(x, 4 * width, (size, size), window=1)
            x = made.sum(short, y)
    x = made.add([x], (2048,), 2048 * size**2)
    made.product(x, 1000)
    return made.step()


def transformer(batch: int, length: int, layers: int, width: int = 768, heads: int = 12) -> Work:
    """Layers of BERT or GPT-2: attention and a perceptron, each with a sum around it."""
    made, shape = Layers(batch), (length, width)
    x = made.add([], shape, length * width)
    for _ in range(layers):
        projected = made.add([x], (3, *shape), 6 * length * width**2)
        scores = made.add([projected], (heads, length, length), 2 * length**2 * width)
        mixed = made.add([projected, scores], shape, 2 * length**2 * width)
        x = made.sum(x, made.add([mixed], shape, 2 * length * width**2))
        inner = made.add([x], (4, *shape), 8 * length * width**2)
        x = made.sum(x, made.add([inner], shape, 8 * length * width**2))
    return made.step()


NETWORKS: Mapping[str, Callable[[], Work]] = {
    "chain-16": lambda: chain(16),
    "chain-64": lambda: chain(64),
    "chain-144": lambda: chain(144),
    "residual-16": lambda: residual(16),
    "residual-64": lambda: residual(64),
    "vgg-16, 256": vgg16,
    "mobilenet, 512": mobilenet,
    "u-net, 32": unet,
    "resnet-50, 32": resnet50,
    "bert, 8 of 512": lambda: transformer(8, 512, 12),
    "gpt-2, 8 of 1,024": lambda: transformer(8, 1024, 12),
}
