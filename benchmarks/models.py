"""Models that benchmarks run: files in a folder, written on demand.

The light ones of the onnx package with weights from a seed, those of `tests/zoo/catalogue.py`,
and the three of the package `rapidocr-onnxruntime`. `NAME@8` is a model at batch 8.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from tests.zoo import light
from tests.zoo.catalogue import FULL
from tests.zoo.detection import Sizes, ssdlite, ssdlite_scores
from tests.zoo.detr import SMALL as SMALL_DETR
from tests.zoo.detr import detr
from tests.zoo.net import Case
from tests.zoo.rcnn import SMALL as SMALL_RCNN
from tests.zoo.rcnn import faster_rcnn, mask_rcnn
from tests.zoo.transformer import decoder
from tests.zoo.yolo import yolo

SEED = 20
SMALL_SSD = Sizes(128, 8, 3, 5, 3, 20, 9)
Shape = tuple[int, ...]

BUILT: dict[str, Callable[[int], Case]] = {
    **FULL,
    "gpt2_block": lambda batch: decoder(1, 768, 12, 128, batch),
    "ssdlite": ssdlite,
    "ssdlite_scores": ssdlite_scores,
    "faster_rcnn": faster_rcnn,
    "mask_rcnn": mask_rcnn,
    "detr": detr,
    "ssdlite_small": partial(ssdlite, sizes=SMALL_SSD),
    "faster_rcnn_small": partial(faster_rcnn, sizes=SMALL_RCNN),
    "mask_rcnn_small": partial(mask_rcnn, sizes=SMALL_RCNN),
    "detr_small": partial(detr, sizes=SMALL_DETR),
    "yolo_suppressed": partial(yolo, suppressed=True),
}
OCR: dict[str, tuple[str, Shape]] = {
    "ocr_detection": ("ch_PP-OCRv4_det_infer.onnx", (3, 480, 640)),
    "ocr_recognition": ("ch_PP-OCRv4_rec_infer.onnx", (3, 48, 320)),
    "ocr_direction": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (3, 48, 192)),
}
"""File in the wheel, and shape of an image."""
WHEEL = "rapidocr-onnxruntime"

LIGHT = light.NAMES
NAMES = (*LIGHT, *BUILT, *OCR)
IN_BATCHES = (
    "resnet50", "densenet121", "squeezenet", "mobilenet_v2", "efficientnet_b0", "yolo", "unet",
    "vit", "gpt2", "whisper_encoder", "whisper_decoder", "lstm", "lstm_bidirectional", "gru",
    "resnet50_int8",
)  # fmt: skip
"""Models that are timed at batch 8 too."""
GROUPS = {
    "light": LIGHT,
    "zoo": tuple(BUILT),
    "ocr": tuple(OCR),
    "batch8": tuple(f"{name}@8" for name in IN_BATCHES),
    "quick": ("squeezenet", "shufflenet", "resnet50", "gpt2_block"),
    "all": NAMES,
}


class NotHadError(Exception):
    """A model that cannot be had here."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A model file, and a file of inputs to run it on."""

    model: Path
    feeds: Path


def stored(name: str, folder: Path) -> Stored:
    """The model in `folder`, written unless it is there: weights from a seed.

    Raises:
        NotHadError: It is in a package that cannot be downloaded.
    """
    path, feeds = folder / f"{name}.onnx", folder / f"{name}.feeds.npz"
    if not feeds.exists():
        plain, _, count = name.partition("@")
        batch = int(count or 1)
        if plain in BUILT:
            case = BUILT[plain](batch)
            path.write_bytes(case.model)
            arrays = case.feeds
        elif plain in OCR:
            arrays = from_wheel(plain, batch, path)
        else:
            arrays = lightly(plain, batch, path)
        np.savez(feeds, **named(arrays))
    return Stored(path, feeds)


def lightly(name: str, batch: int, path: Path) -> dict[str, NDArray[Any]]:
    """Write a light model at a batch; returns its inputs.

    It has no initializers that nothing reads, and none that are listed as inputs too, which
    would not be constants.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        model = onnx.load(light.randomised(name, SEED, Path(folder)))
    shape = (batch, *light.SHAPE[1:])
    image = np.random.default_rng(SEED).standard_normal(shape, dtype=np.float32)
    name_of_input = light.input_name(model)
    tidy(model.graph, name_of_input)
    if batch > 1:
        rebatch(model.graph, batch)
    path.write_bytes(model.SerializeToString())
    return {name_of_input: image}


def tidy(graph: onnx.GraphProto, name_of_input: str) -> None:
    """Leave one input and the initializers that are read."""
    given = [value for value in graph.input if value.name == name_of_input]
    del graph.input[:]
    graph.input.extend(given)
    read = {name for node in graph.node for name in node.input}
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in read:
            del graph.initializer[index]


def rebatch(graph: onnx.GraphProto, batch: int) -> None:
    """Change batch 1 to another: inputs, outputs, and shapes that a Reshape is given."""
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    del graph.value_info[:]
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in shapes:
            shape = numpy_helper.to_array(tensor).copy()
            if shape.size and shape[0] == 1:
                shape[0] = batch
                tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))


def from_wheel(name: str, batch: int, path: Path) -> dict[str, NDArray[Any]]:
    """Write a model of the package as it is there; returns inputs.

    Raises:
        NotHadError: pip cannot download the package.
    """
    file, shape = OCR[name]
    if not any(path.parent.glob("rapidocr*.whl")):
        downloaded = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest",
             str(path.parent), WHEEL], capture_output=True, text=True, check=False,
        )  # fmt: skip
        if downloaded.returncode:
            message = f"`{name}` is in the package `{WHEEL}`, which pip cannot download."
            raise NotHadError(message)
    (wheel,) = path.parent.glob("rapidocr*.whl")
    with zipfile.ZipFile(wheel) as archive:
        path.write_bytes(archive.read(f"rapidocr_onnxruntime/models/{file}"))
    image = np.random.default_rng(SEED).uniform(-1, 1, (batch, *shape)).astype(np.float32)
    return {"x": image}


def named(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Arrays as keywords; `numpy.savez` has a parameter `file` that no input is called."""
    return dict(arrays)


def chosen(text: str, batches: str = "1") -> tuple[str, ...]:
    """Names from a comma-separated list of models and groups.

    Those that do not say a batch come once at each of `batches`.
    """
    plain = [name for part in text.split(",") for name in GROUPS.get(part, (part,))]
    unknown = [name for name in plain if name.partition("@")[0] not in NAMES]
    if unknown:
        message = (
            f"There is no model `{unknown[0]}`; there are {', '.join(GROUPS)}, {', '.join(NAMES)}."
        )
        raise SystemExit(message)
    names = [
        name if "@" in name or batch == "1" else f"{name}@{batch}"
        for name in plain
        for batch in batches.split(",")
    ]
    return tuple(dict.fromkeys(names))


def is_quantized(name: str) -> bool:
    """Whether it computes in eight bits."""
    return "int8" in name or "qlinear" in name


def is_dynamically_quantized(name: str) -> bool:
    """Whether its scales come from the data that it runs on."""
    return name == "bert_int8"
