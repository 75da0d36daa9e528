"""The ONNX encoder that a GGUF file of BERT stands for: tokens in, their vectors or scores out.

Inputs and outputs have the names and shapes that exports of BERT have: `input_ids`,
`attention_mask` and `token_type_ids` of `[batch_size, sequence_length]`, and `last_hidden_state`,
or `logits` of a model that scores pairs of texts.
"""

from dataclasses import dataclass

from onnx import ModelProto, TensorProto, helper

from tightship.frontend.gguf.decoder import IR_VERSION, OPSETS, TABLE
from tightship.frontend.gguf.encoder_parameters import EncoderParameters
from tightship.frontend.gguf.nodes import Nodes
from tightship.frontend.gguf.weights import Weights

POSITIONS, TYPES = "position_embd.weight", "token_types.weight"
HEAD, SCORES = "cls", "cls.output"


def encoder_of(weights: Weights, parameters: EncoderParameters) -> ModelProto:
    """Write the encoder, whose constants stay in the file.

    Raises:
        FormatError: A tensor is missing, or has another shape than the metadata says.
        GraphError: A tensor has a type or a name that is not supported.
    """
    writer = _Writer(weights.nodes, weights, parameters)
    x = writer.embedded()
    kept = weights.nodes("Cast", "attention_mask", to=TensorProto.BOOL)
    mask = weights.nodes("Unsqueeze", kept, weights.nodes.numbers([1, 2]))
    for index in range(parameters.layers):
        x = writer.layer(f"blk.{index}", x, mask)
    weights.nodes.begin("head.")
    last: list[int | str] = ["batch_size", "sequence_length", parameters.width]
    name = "last_hidden_state"
    if parameters.scores_pairs:
        x, labels = writer.scored(x)
        name, last = "logits", ["batch_size", labels]
    weights.nodes.many("Identity", [name], x)
    weights.refuse_unread("bert")
    ids = ["batch_size", "sequence_length"]
    graph = helper.make_graph(
        weights.nodes.nodes,
        "bert",
        [
            helper.make_tensor_value_info(each, TensorProto.INT64, ids)
            for each in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, last)],
        weights.nodes.tensors,
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writer of the parts of one encoder."""

    nodes: Nodes
    weights: Weights
    parameters: EncoderParameters

    def embedded(self) -> str:
        """Write the sum of the rows of tokens, of their kinds and of their places, normalized."""
        width, nodes = self.parameters.width, self.nodes
        table = self.weights.matrix(TABLE, self.weights.rows(TABLE), width)
        x = nodes("Gather", table, "input_ids", axis=0)
        kinds = self.weights.matrix(TYPES, self.weights.rows(TYPES), width)
        x = nodes("Add", x, nodes("Gather", kinds, "token_type_ids", axis=0))
        steps = nodes("Squeeze", nodes("Shape", "input_ids", start=1, end=2))
        index = nodes("Range", nodes.numbers(0), steps, nodes.numbers(1))
        places = self.weights.matrix(POSITIONS, self.weights.rows(POSITIONS), width)
        x = nodes("Add", x, nodes("Gather", places, index, axis=0))
        return self._normalized(x, "token_embd_norm")

    def layer(self, name: str, x: str, mask: str) -> str:
        """Write a layer; return its tokens, [batch, tokens, width]."""
        p = self.parameters
        self.nodes.begin(f"{name}.")
        mixed = self.nodes(
            "Attention", *self._queries_keys_values(name, x), mask,
            q_num_heads=p.heads, kv_num_heads=p.heads,
        )  # fmt: skip
        mixed = self._linear(mixed, f"{name}.attn_output", p.width, p.width)
        x = self._normalized(self.nodes("Add", mixed, x), f"{name}.attn_output_norm")
        inside = self.nodes("Gelu", self._linear(x, f"{name}.ffn_up", p.inner, p.width))
        inner = self._linear(inside, f"{name}.ffn_down", p.width, p.inner)
        return self._normalized(self.nodes("Add", inner, x), f"{name}.layer_output_norm")

    def scored(self, x: str) -> tuple[str, int]:
        """Write the scores of pairs by their first tokens; return them, and how many a pair has."""
        width = self.parameters.width
        x = self.nodes("Gather", x, self.nodes.numbers(0), axis=1)
        if self.weights.has(f"{HEAD}.weight"):
            x = self.nodes("Tanh", self._linear(x, HEAD, width, width))
        labels = self.weights.rows(f"{SCORES}.weight")
        return self._linear(x, SCORES, labels, width), labels

    def _queries_keys_values(self, name: str, x: str) -> list[str]:
        """Write queries, keys and values, each [batch, tokens, width]."""
        width = self.parameters.width
        if not self.weights.has(f"{name}.attn_qkv.weight"):
            return [self._linear(x, f"{name}.attn_{part}", width, width) for part in "qkv"]
        whole = self._linear(x, f"{name}.attn_qkv", 3 * width, width)
        names = [f"{name}.{part}" for part in ("query", "key", "value")]
        return self.nodes.many("Split", names, whole, self.nodes.numbers([width] * 3), axis=-1)

    def _linear(self, x: str, name: str, rows: int, depth: int) -> str:
        """Write a product with a bias, [..., depth] to [..., rows]."""
        x = self.weights.product(x, f"{name}.weight", rows, depth)
        return self.nodes("Add", x, self.weights.vector(f"{name}.bias", rows))

    def _normalized(self, x: str, name: str) -> str:
        scale, bias = (
            self.weights.vector(f"{name}.{part}", self.parameters.width)
            for part in ("weight", "bias")
        )
        epsilon = self.parameters.epsilon
        return self.nodes("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)
