"""Exports of a small encoder: an ONNX file with the files that are beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.frontend.gguf.decoders import Model
from tests.frontend.gguf.encoders import HEADS, TOKENS, WIDTH


class _Writer:
    def __init__(self, model: Model) -> None:
        self.model, self.nodes = model, list[Any]()
        self.tensors = [numpy_helper.from_array(model.floats(name), name) for name in model.tensors]

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, x: str, name: str) -> str:
        turned = self("Transpose", f"{name}.weight", perm=[1, 0])
        return self("Add", self("MatMul", x, turned), f"{name}.bias")

    def norm(self, x: str, name: str) -> str:
        return self("LayerNormalization", x, f"{name}.weight", f"{name}.bias", epsilon=1e-5)

    def heads(self, x: str) -> str:
        apart = self("Reshape", x, self.constant([0, 0, HEADS, WIDTH // HEADS]))
        return self("Transpose", apart, perm=[0, 2, 1, 3])


def onnx_encoder(model: Model, *, has_kinds: bool = True) -> ModelProto:
    """Return the encoder as PyTorch exports one, of operators that any runtime has."""
    s = _Writer(model)
    x = s("Gather", "token_embd.weight", "input_ids")
    kinds = "token_type_ids" if has_kinds else s("Mul", "input_ids", s.constant(0))
    x = s("Add", x, s("Gather", "token_types.weight", kinds))
    count = s("Shape", "input_ids", start=1, end=2)
    places = s("Slice", "position_embd.weight", s.constant([0]), count, s.constant([0]))
    x = s.norm(s("Add", x, places), "token_embd_norm")
    mask = s("Unsqueeze", s("Cast", "attention_mask", to=1), s.constant([1, 2]))
    away = s("Mul", s("Sub", s.constant(np.float32(1)), mask), s.constant(np.float32(-1e9)))
    for layer in range(model.fields["block_count"]):
        name = f"blk.{layer}"
        q, k, v = (s.heads(s.linear(x, f"{name}.attn_{part}")) for part in "qkv")
        scores = s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2]))
        root = s.constant(np.float32((WIDTH // HEADS) ** 0.5))
        weights = s("Softmax", s("Add", s("Div", scores, root), away), axis=-1)
        side = s("Transpose", s("MatMul", weights, v), perm=[0, 2, 1, 3])
        mixed = s.linear(s("Reshape", side, s.constant([0, 0, WIDTH])), f"{name}.attn_output")
        x = s.norm(s("Add", x, mixed), f"{name}.attn_output_norm")
        inside = s.linear(x, f"{name}.ffn_up")
        bent = s("Erf", s("Div", inside, s.constant(np.float32(2**0.5))))
        half = s("Mul", inside, s.constant(np.float32(0.5)))
        inside = s("Mul", half, s("Add", bent, s.constant(np.float32(1))))
        x = s.norm(s("Add", x, s.linear(inside, f"{name}.ffn_down")), f"{name}.layer_output_norm")
    output, shape = "last_hidden_state", ["batch", "tokens", WIDTH]
    if "cls.weight" in model.tensors:
        first = s("Gather", x, s.constant(0), axis=1)
        x = s.linear(s("Tanh", s.linear(first, "cls")), "cls.output")
        output, shape = "logits", ["batch", 1]
    s.nodes.append(helper.make_node("Identity", [x], [output]))
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if has_kinds else [])]
    graph = helper.make_graph(
        s.nodes,
        "encoder",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "tokens"]) for n in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        s.tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def tokenizer() -> Tokenizer:
    """Return the tokenizer of the encoder's vocabulary."""
    numbers = {token: number for number, token in enumerate(TOKENS)}
    found = Tokenizer(models.WordPiece(vocab=numbers, unk_token="[UNK]"))
    found.normalizer = normalizers.BertNormalizer(lowercase=True)
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return found


def exported(folder: Path, model: Model, *, pooling: str = "mean_tokens", **options: Any) -> Path:
    """Write an export as sentence-transformers has it; return the ONNX file."""
    path = folder / "onnx" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(onnx_encoder(model, **options).SerializeToString())
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 64}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 48}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    return path
