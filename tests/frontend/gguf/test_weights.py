"""Tensors that a decoder needs."""

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import decoder
from tests.frontend.gguf.written import Tensor, random_blocks
from tightship.errors import FormatError, GraphError, TightshipError


@pytest.mark.parametrize(
    ("name", "tensor", "error", "message"),
    [
        ("blk.0.ffn_up.weight", None, FormatError, "lacks the tensor `blk.0.ffn_up.weight`"),
        ("token_embd.weight", None, FormatError, "has no matrix `token_embd.weight`"),
        ("token_embd.weight", Tensor.floats(np.ones(64)), FormatError, "has no matrix"),
        ("blk.0.attn_k.weight", random_blocks("F32", 16, 64, 0), FormatError,
         r"has the shape \[16, 64\]; the metadata says \[32, 64\]"),
        ("blk.0.attn_k.weight", Tensor("IQ4_NL", (32, 64), bytes(32 * 36)), GraphError,
         "has the type IQ4_NL, which is not supported; supported are F32, F16"),
        ("output_norm.weight", Tensor("Q8_0", (64,), bytes(68)), GraphError,
         "has the type Q8_0, which is not supported; supported are F32, F16, BF16"),
    ],
)  # fmt: skip
def test_tensors_that_do_not_fit_are_refused(
    name: str, tensor: Tensor | None, error: type[TightshipError], message: str
) -> None:
    model = decoder()
    del model.tensors[name]
    if tensor is not None:
        model.tensors[name] = tensor
    with pytest.raises(error, match=message):
        tightship.plan(model.written())
