"""The sample networks by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from tightship.errors import InputError
from tightship.public_calls import public_call
from tightship.sample.convolutional import inception_bn, resnet
from tightship.sample.network import Network
from tightship.sample.perceptron import perceptron
from tightship.sample.transformers import bert, gpt2

BATCH, SEQUENCE = "batch", "sequence"
"""Names of the open lengths."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A network that can be written.

    Attributes:
        what: What it is, in a line.
        write: Writes it into a network.
    """

    what: str
    write: Callable[[Network], None]


SAMPLES: Mapping[str, Sample] = MappingProxyType(
    {
        "mlp": Sample(
            "the memory note's fully connected network, 784-128-64-10",
            partial(perceptron, batch=BATCH),
        ),
        "inception_bn": Sample(
            "Inception-BN, 224 x 224, which the memory note's figures are of",
            partial(inception_bn, batch=BATCH),
        ),
        "resnet50": Sample(
            "ResNet-50, 224 x 224, with batch normalizations", partial(resnet, batch=BATCH)
        ),
        "bert": Sample(
            "BERT-base with the head that it is trained with, up to 512 tokens",
            partial(bert, batch=BATCH, steps=SEQUENCE),
        ),
        "gpt2": Sample(
            "GPT-2 small without a cache, up to 1,024 tokens",
            partial(gpt2, batch=BATCH, steps=SEQUENCE),
        ),
    }
)
"""Networks with an open batch."""


@public_call
def sample(name: str, seed: int = 0) -> bytes:
    """Make a sample network; equal seeds give equal bytes.

    Args:
        name: One of `SAMPLES`.
        seed: Seed of the weights, 0 or more.

    Returns:
        An ONNX model, as `load` and `plan` take it. Its first dimension is open, as is the length
        of texts.

    Raises:
        InputError: No sample has this name, or the seed is negative.
    """
    if name not in SAMPLES:
        raise InputError(f"`{name}` is not a sample network; these are: {', '.join(SAMPLES)}.")
    if seed < 0:
        raise InputError(f"The seed is {seed}; give 0 or more.")
    network = Network(seed)
    SAMPLES[name].write(network)
    content: bytes = network.model(name).SerializeToString()
    return content
