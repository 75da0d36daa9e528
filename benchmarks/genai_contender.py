"""OpenVINO GenAI or onnxruntime-genai as a contender of bench_text: commands on standard input.

    python -m benchmarks.genai_contender KIND FOLDER CONTEXT THREADS

`write` makes the folder. `prompt COUNT THREADS` and `steps PAST COUNT THREADS` print tokens per
second, as llama_contender. OpenVINO GenAI reads the GGUF file; it generates from a text's start
only, so its steps are those of its own statistics, and processor time would count the text as well.
onnxruntime-genai reads the same integers and scales as its builder would write them, with accuracy
level 4. Both packages must be installed.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from benchmarks import gguf_decoder

KINDS = ("openvino-genai", "onnxruntime-genai")
FILE_TYPES = {"Q4_0": 2, "Q8_0": 7}
"""Values of `general.file_type`, without which OpenVINO GenAI reads no file."""
TOKENS = 300 + np.arange(1 << 16) * 48271 % 30011


class Generator(Protocol):
    """A loaded model."""

    def prompt(self, count: int) -> float:
        """Return the seconds until a prompt's logits are there."""

    def steps(self, past: int, count: int) -> float:
        """Return the seconds that a token takes, by so many behind the first one."""


class OpenVino:
    """A pipeline of OpenVINO GenAI for one text."""

    def __init__(self, folder: Path, _context: int, threads: int) -> None:
        import openvino
        import openvino_genai

        self.genai, self.tensor, self.turn = openvino_genai, openvino.Tensor, 0
        self.pipeline = openvino_genai.LLMPipeline(
            folder / "model.gguf", "CPU", INFERENCE_NUM_THREADS=threads
        )

    def prompt(self, count: int) -> float:
        """Generate one token."""
        start = time.perf_counter()
        self._generate(count, 1)
        return time.perf_counter() - start

    def steps(self, past: int, count: int) -> float:
        """Generate tokens, and read the time of those behind the first from the statistics."""
        return float(self._generate(past, count).get_tpot().mean) / 1e3

    def _generate(self, past: int, count: int) -> Any:
        self.turn += 1  # the pipeline keeps beginnings of texts that it has met
        ids = TOKENS[None, self.turn : self.turn + past].astype(np.int64)
        given = self.genai.TokenizedInputs(self.tensor(ids), self.tensor(np.ones_like(ids)))
        config = self.genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = count, True, False
        return self.pipeline.generate(given, config).perf_metrics


class OnnxRuntime:
    """A generator of onnxruntime-genai, its caches bound once for the whole context."""

    def __init__(self, folder: Path, context: int, threads: int) -> None:
        import onnxruntime_genai

        config = onnxruntime_genai.Config(str(folder))
        options = {"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}
        config.overlay(json.dumps(options))
        self.model = onnxruntime_genai.Model(config)
        given = onnxruntime_genai.GeneratorParams(self.model)
        given.set_search_options(max_length=context, do_sample=False)
        self.generator = onnxruntime_genai.Generator(self.model, given)

    def prompt(self, count: int) -> float:
        """Append a text behind nothing."""
        self.generator.rewind_to(0)
        start = time.perf_counter()
        self.generator.append_tokens(TOKENS[:count].astype(np.int32))
        return time.perf_counter() - start

    def steps(self, past: int, count: int) -> float:
        """Append single tokens."""
        self.prompt(past)
        self.generator.append_tokens(TOKENS[past : past + 1].astype(np.int32))
        start = time.perf_counter()
        for place in range(past + 1, past + count):
            self.generator.append_tokens(TOKENS[place : place + 1].astype(np.int32))
        return (time.perf_counter() - start) / (count - 1)


def write(gguf: Path, folder: Path, kind: str) -> None:
    """Write what the contender reads of a Llama of Q4_0 or Q8_0 into a folder.

    Raises:
        ValueError: The file has another architecture, or matrices of another type.
    """
    if kind == "openvino-genai":
        _write_typed(gguf, folder / "model.gguf")
        return
    model = gguf_decoder.read(gguf)
    gguf_decoder.write(model, folder / "model.onnx")
    table = model.blocks("token_embd")
    names = {each: f"{each}.%d" for each in ("past_key_values", "present")}
    described = {
        "model": {
            "type": "llama", "context_length": 32768, "vocab_size": len(table.scales),
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2,
            "decoder": {
                "filename": "model.onnx", "head_size": model.length, "hidden_size": table.depth,
                "num_attention_heads": model.heads, "num_hidden_layers": model.layers,
                "num_key_value_heads": model.shared, "session_options": {},
                "inputs": {
                    "input_ids": "input_ids", "attention_mask": "attention_mask",
                    "past_key_names": f"{names['past_key_values']}.key",
                    "past_value_names": f"{names['past_key_values']}.value",
                },
                "outputs": {
                    "logits": "logits", "present_key_names": f"{names['present']}.key",
                    "present_value_names": f"{names['present']}.value",
                },
            },
        },
        "search": {"past_present_share_buffer": True, "max_length": 32768},
    }  # fmt: skip
    (folder / "genai_config.json").write_text(json.dumps(described), encoding="utf-8")


def _write_typed(gguf: Path, path: Path) -> None:
    """Copy a GGUF file, with the type of its file named if it was not."""
    from gguf import (  # type: ignore[import-not-found, unused-ignore]
        GGUFReader,
        GGUFValueType,
        GGUFWriter,
    )

    reader = GGUFReader(gguf)
    if "general.file_type" in reader.fields:
        path.symlink_to(gguf.resolve())
        return
    architecture = reader.fields["general.architecture"].contents()
    writer = GGUFWriter(path, architecture)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    (kind,) = {each.tensor_type.name for each in reader.tensors} & FILE_TYPES.keys()
    writer.add_uint32("general.file_type", FILE_TYPES[kind])
    for each in reader.tensors:
        data = each.data
        writer.add_tensor_info(each.name, data.shape, data.dtype, data.nbytes, each.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for each in reader.tensors:
        writer.write_tensor_data(each.data)
    writer.close()


def main() -> None:
    """Load the model, and answer commands."""
    kind, folder, context, threads = sys.argv[1:]
    made = {"openvino-genai": OpenVino, "onnxruntime-genai": OnnxRuntime}[kind]
    generator: Generator = made(Path(folder), int(context), int(threads))
    print("ready", flush=True)
    for line in sys.stdin:
        name, *rest = line.split()
        first, second, *_ = map(int, rest)
        if name == "prompt":
            found = first / generator.prompt(first)
        else:
            found = 1 / generator.steps(first, second)
        print(f"{found:.3f}", flush=True)


if __name__ == "__main__":
    main()
