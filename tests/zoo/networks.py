"""Every small network by name; each is written once a session."""

import functools
from collections.abc import Callable, Mapping

from tests.zoo.convolutional import (
    convolutions,
    detector,
    mobile,
    residual,
    segmenter,
    shuffled,
)  # fmt: skip
from tests.zoo.detection import Sizes, ssdlite
from tests.zoo.detr import SMALL as DETR_SIZES
from tests.zoo.detr import detr
from tests.zoo.dynamic import branches, detections, loops, sequences, strings
from tests.zoo.net import Case
from tests.zoo.oracle import Array, expected
from tests.zoo.rcnn import SMALL as RCNN_SIZES
from tests.zoo.rcnn import faster_rcnn, mask_rcnn
from tests.zoo.recurrent import recurrent
from tests.zoo.transformer import decoder, encoder

STATIC: Mapping[str, Callable[[], Case]] = {
    "residual": residual,
    "residual of batch 3, 17 channels": lambda: residual(3, 17),
    "mobile": mobile,
    "mobile of batch 2": lambda: mobile(2),
    "detector": detector,
    "segmenter": segmenter,
    "convolutions": convolutions,
    "shuffled": shuffled,
    "encoder": lambda: encoder(2, 128, 4, 32, decomposed=False),
    "encoder, decomposed, batch 2": lambda: encoder(2, 128, 4, 32, decomposed=True, batch=2),
    "decoder": lambda: decoder(2, 128, 4, 24),
    "recurrent": recurrent,
    "branches": branches,
    "loops": loops,
    "detector with queries": lambda: detr(sizes=DETR_SIZES),
}
"""Networks whose shapes are all known in advance."""

DYNAMIC: Mapping[str, Callable[[], Case]] = {
    "detections": detections,
    "detector with suppression": lambda: ssdlite(sizes=Sizes(64, 8, 3, 5, 3, 20, 9)),
    "detector of two stages": lambda: faster_rcnn(sizes=RCNN_SIZES),
    "detector with masks": lambda: mask_rcnn(sizes=RCNN_SIZES),
    "sequences": sequences,
    "strings": strings,
}
"""Networks with steps that allocate."""

ALL = (*STATIC, *DYNAMIC)


@functools.cache
def network(name: str) -> tuple[Case, dict[str, Array]]:
    """A network, and what ONNX Runtime makes of its inputs."""
    case = {**STATIC, **DYNAMIC}[name]()
    return case, expected(case.model, case.feeds)
