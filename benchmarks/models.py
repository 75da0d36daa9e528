"""Models that benchmarks run: the light ones with weights from a seed, and transformers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from tests.zoo import light
from tests.zoo.net import Case
from tests.zoo.transformer import decoder, encoder

SEED = 20

TRANSFORMERS: dict[str, Callable[[], Case]] = {
    "bert": lambda: encoder(12, 768, 12, 128, decomposed=False),
    "bert_decomposed": lambda: encoder(4, 768, 12, 128, decomposed=True),
    "gpt2_block": lambda: decoder(1, 768, 12, 128),
}
"""BERT-base in the operators of today; four of its layers as older exporters write them; one
block of GPT-2. All at 128 steps."""

LIGHT = light.NAMES
NAMES = (*LIGHT, *TRANSFORMERS)
QUICK = ("squeezenet", "shufflenet", "resnet50", "gpt2_block")


@dataclass(frozen=True, slots=True)
class Stored:
    """A model file, and a file of inputs to run it on."""

    model: Path
    feeds: Path


def stored(name: str, folder: Path) -> Stored:
    """The model in `folder`, written unless it is there: batch 1, weights from a seed.

    It has no initializers that nothing reads, and none that are listed as inputs too, which
    would not be constants.
    """
    path, feeds = folder / f"{name}.onnx", folder / f"{name}.feeds.npz"
    if not feeds.exists():
        if name in TRANSFORMERS:
            case = TRANSFORMERS[name]()
            path.write_bytes(case.model)
            np.savez(feeds, **named(case.feeds))
        else:
            light.randomised(name, SEED, folder)
            model = onnx.load(path)
            image = np.random.default_rng(SEED).standard_normal(light.SHAPE, dtype=np.float32)
            name_of_input = light.input_name(model)
            tidy(model.graph, name_of_input)
            path.write_bytes(model.SerializeToString())
            np.savez(feeds, **named({name_of_input: image}))
    return Stored(path, feeds)


def tidy(graph: onnx.GraphProto, name_of_input: str) -> None:
    """Leave one input and the initializers that are read."""
    given = [value for value in graph.input if value.name == name_of_input]
    del graph.input[:]
    graph.input.extend(given)
    read = {name for node in graph.node for name in node.input}
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in read:
            del graph.initializer[index]


def named(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Arrays as keywords; `numpy.savez` has a parameter `file` that no input is called."""
    return dict(arrays)


def chosen(text: str) -> tuple[str, ...]:
    """Names from a comma-separated list, `light`, `quick` or `all`."""
    groups = {"light": LIGHT, "quick": QUICK, "all": NAMES}
    names = [name for part in text.split(",") for name in groups.get(part, (part,))]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        message = f"There is no model `{unknown[0]}`; there are {', '.join(NAMES)}."
        raise SystemExit(message)
    return tuple(dict.fromkeys(names))
