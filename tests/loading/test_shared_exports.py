"""`share=True` over transformers as torch exports them: one copy of the weights at every length."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
try:
    import torchvision  # noqa: F401
except (ImportError, OSError, RuntimeError):
    # transformers would import one that is there and was built for another torch, and fail.
    sys.modules["torchvision"] = None  # type: ignore[assignment]
transformers = pytest.importorskip("transformers")
pytest.importorskip("onnxscript")

pytestmark = pytest.mark.slow

SIZE = {
    "hidden_size": 384, "num_hidden_layers": 3, "num_attention_heads": 6, "vocab_size": 3000,
    "intermediate_size": 1024, "max_position_embeddings": 256, "pad_token_id": 0,
}  # fmt: skip
HEADS = {"num_key_value_heads": 2}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "Roberta": ("Model", SIZE),
    "DistilBert": (
        "Model",
        {"dim": 384, "n_layers": 3, "n_heads": 6, "hidden_dim": 1536, "vocab_size": 3000,
         "max_position_embeddings": 256},
    ),
    "ModernBert": ("Model", SIZE),
    "Llama": ("ForCausalLM", SIZE | HEADS),
    "Qwen2": ("ForCausalLM", SIZE | HEADS),
    "GPT2": (
        "LMHeadModel",
        {"n_embd": 384, "n_layer": 3, "n_head": 6, "vocab_size": 3000, "n_positions": 256},
    ),
}  # fmt: skip
NAMES = ["input_ids", "attention_mask"]


class FirstOutput(torch.nn.Module):
    """A model of `transformers` with its two inputs by place, and its first output alone."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = self.model(input_ids=ids, attention_mask=mask, return_dict=True)
        return next(iter(found.values()))


def made(family: str, dtype: torch.dtype) -> FirstOutput:
    """A family's model with random weights."""
    torch.manual_seed(0)
    suffix, settings = FAMILIES[family]
    known = {"attn_implementation": "eager", **settings}
    config = getattr(transformers, f"{family}Config")(**known)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return FirstOutput(getattr(transformers, f"{family}{suffix}")(config).to(dtype).eval())


def exported(family: str, path: Path, *, dynamo: bool, dtype: torch.dtype = torch.float32) -> None:
    """Write a family's ONNX file, batch and length open."""
    example = torch.ones(2, 16, dtype=torch.long), torch.ones(2, 16, dtype=torch.long)
    axes = {0: "batch", 1: "sequence"}
    dims = {0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("sequence", max=200)}
    how = (
        {"dynamic_shapes": (dims, dims), "external_data": False, "verbose": False}
        if dynamo
        else {"dynamic_axes": dict.fromkeys([*NAMES, "y"], axes), "opset_version": 17}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            made(family, dtype), example, path, dynamo=dynamo, input_names=NAMES,
            output_names=["y"], **how,
        )  # fmt: skip


def sizes(path: Path, how: str) -> dict[str, int]:
    """Return the sizes that a process of its own prints, with or without sharing."""
    command = [sys.executable, "-W", "error", "-m", "tests.loading.lengths_process"]
    done = subprocess.run([*command, path, how, *NAMES], input=b"", capture_output=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def check(path: Path) -> None:
    alone = sizes(path, "alone")
    assert alone["own"] > 6 << 20
    for _ in range(2):  # the first prepares it
        shared = sizes(path, "shared")
        assert shared["own"] < 1 << 20
        assert shared["grown"] < alone["grown"] + (2 << 20)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_an_export_shares_its_weights_at_every_length(
    family: str, dynamo: bool, tmp_path: Path
) -> None:
    exported(family, tmp_path / "model.onnx", dynamo=dynamo)
    check(tmp_path / "model.onnx")


@pytest.mark.parametrize("family", ["Roberta", "Llama"])
def test_an_export_in_half_precision_does(family: str, tmp_path: Path) -> None:
    exported(family, tmp_path / "model.onnx", dynamo=True, dtype=torch.float16)
    check(tmp_path / "model.onnx")
