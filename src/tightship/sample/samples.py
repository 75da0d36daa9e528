"""The sample networks by name."""

from collections.abc import Callable, Mapping
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


_WRITERS: Mapping[str, Callable[[Network], None]] = {
    "mlp": partial(perceptron, batch=BATCH),
    "inception_bn": partial(inception_bn, batch=BATCH),
    "resnet50": partial(resnet, batch=BATCH),
    "bert": partial(bert, batch=BATCH, steps=SEQUENCE),
    "gpt2": partial(gpt2, batch=BATCH, steps=SEQUENCE),
}

SAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "mlp": "the memory note's fully connected network, 784-128-64-10",
        "inception_bn": "Inception-BN, 224 x 224, which the memory note's figures are of",
        "resnet50": "ResNet-50, 224 x 224, with batch normalizations",
        "bert": "BERT-base with the head that it is trained with, up to 512 tokens",
        "gpt2": "GPT-2 small without a cache, up to 1,024 tokens",
    }
)
"""Networks by name, and what each is."""


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
    _WRITERS[name](network)
    content: bytes = network.model(name).SerializeToString()
    return content
