"""Models as people run them: each in its real size for benchmarks, and small for tests."""

from collections.abc import Callable, Mapping
from functools import partial

from tests.zoo.attention import TORCHSCRIPT, Heads
from tests.zoo.efficient import efficientnet_b0, mobilenet_v2
from tests.zoo.gpt2 import Size, gpt2, gpt2_decode
from tests.zoo.net import Case
from tests.zoo.quantized import dynamically_quantized, quantized
from tests.zoo.recurrent import gru, lstm
from tests.zoo.resnet import resnet
from tests.zoo.transformer import encoder
from tests.zoo.unet import unet
from tests.zoo.vit import vit
from tests.zoo.whisper import whisper_decoder, whisper_encoder
from tests.zoo.yolo import yolo

Builder = Callable[[int], Case]
"""Function from the batch size to a case."""

FULL: Mapping[str, Builder] = {
    "resnet50_folded": resnet,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "yolo": yolo,
    "unet": unet,
    "unet_resized": partial(unet, resized=True),
    "bert": lambda batch: encoder(12, 768, 12, 128, decomposed=False, batch=batch),
    "bert_decomposed": lambda batch: encoder(4, 768, 12, 128, decomposed=True, batch=batch),
    "gpt2": gpt2,
    "gpt2_decomposed": partial(gpt2, opset=TORCHSCRIPT),
    "gpt2_decode": gpt2_decode,
    "vit": vit,
    "vit_decomposed": partial(vit, layers=4, opset=TORCHSCRIPT),
    "whisper_encoder": whisper_encoder,
    "whisper_encoder_decomposed": partial(whisper_encoder, opset=TORCHSCRIPT),
    "whisper_decoder": whisper_decoder,
    "lstm": lstm,
    "lstm_bidirectional": partial(lstm, both_ways=True),
    "gru": gru,
    "resnet50_int8": lambda batch: quantized(resnet(batch), "qdq"),
    "resnet50_qlinear": lambda batch: quantized(resnet(batch), "operators"),
    "bert_int8": lambda batch: dynamically_quantized(
        encoder(12, 768, 12, 128, decomposed=False, batch=batch)
    ),
}
"""Real sizes; `bert_decomposed` and `vit_decomposed` have four layers."""

_HEADS = Heads(4, 16)
_GPT2 = Size(2, _HEADS, 100, 64)
_RESNET = partial(resnet, size=64, blocks=(1, 2), width=16)

SMALL: Mapping[str, Builder] = {
    "resnet50_folded": _RESNET,
    "mobilenet_v2": partial(mobilenet_v2, size=64, depth=4),
    "efficientnet_b0": partial(efficientnet_b0, size=64, depth=4),
    "yolo": partial(yolo, size=64, width=8, classes=5),
    "unet": partial(unet, size=32, width=8, levels=2),
    "unet_resized": partial(unet, size=32, width=8, levels=2, resized=True),
    "bert": lambda batch: encoder(2, 128, 4, 32, decomposed=False, batch=batch),
    "bert_decomposed": lambda batch: encoder(2, 128, 4, 32, decomposed=True, batch=batch),
    "gpt2": partial(gpt2, steps=12, size=_GPT2),
    "gpt2_decomposed": partial(gpt2, steps=12, size=_GPT2, opset=TORCHSCRIPT),
    "gpt2_decode": partial(gpt2_decode, past=9, size=_GPT2),
    "gpt2_decode_decomposed": partial(gpt2_decode, past=9, size=_GPT2, opset=TORCHSCRIPT),
    "vit": partial(vit, size=64, layers=2, heads=_HEADS),
    "vit_decomposed": partial(vit, size=64, layers=2, heads=_HEADS, opset=TORCHSCRIPT),
    "whisper_encoder": partial(whisper_encoder, frames=60, layers=2, heads=_HEADS),
    "whisper_encoder_decomposed": partial(
        whisper_encoder, frames=60, layers=2, heads=_HEADS, opset=TORCHSCRIPT
    ),
    "whisper_decoder": partial(
        whisper_decoder, past=7, layers=2, heads=_HEADS, sound=30, vocabulary=100
    ),
    "whisper_decoder_decomposed": partial(
        whisper_decoder, past=7, layers=2, heads=_HEADS, opset=TORCHSCRIPT, sound=30,
        vocabulary=100,
    ),
    "lstm": partial(lstm, steps=9, hidden=20),
    "lstm_bidirectional": partial(lstm, steps=9, hidden=20, both_ways=True),
    "gru": partial(gru, steps=9, hidden=20),
    "resnet50_int8": lambda batch: quantized(_RESNET(batch), "qdq"),
    "resnet50_qlinear": lambda batch: quantized(_RESNET(batch), "operators"),
    "bert_int8": lambda batch: dynamically_quantized(
        encoder(2, 128, 4, 32, decomposed=False, batch=batch)
    ),
}  # fmt: skip
"""The same structures at sizes that run in milliseconds."""
