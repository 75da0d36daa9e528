"""Compares the tokens of texts with those of llama.cpp, over a folder of vocabularies.

    python -m benchmarks.bench_vocabularies FOLDER [--peer PYTHON] [--texts 2000]

The folder has files `ggml-vocab-*.gguf`, as the source package of `llama-cpp-python` has them in
`vendor/llama.cpp/models`; many come with texts (`.inp`) and their tokens (`.out`). With `--peer`,
an interpreter that has `xllamacpp`, texts of many scripts, of emoji and of code are compared too:
each vocabulary is put into a small model, which llama.cpp loads.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from tests.frontend.gguf.written import Tensor, pairs, row

from tightship.errors import GraphError
from tightship.frontend.gguf.cursor import Cursor
from tightship.frontend.gguf.fields import read_field
from tightship.text import Tokenizer

SEPARATOR = "\n__ggml_vocab_test__\n"
WIDTH, LENGTH = 32, 16
SCRIPTS = (
    (0x20, 0x7E), (0xA0, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5F4), (0x600, 0x6FF),
    (0x900, 0x97F), (0xE00, 0xE5B), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x3040, 0x30FF),
    (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x2000, 0x206F), (0x2190, 0x22FF), (0x1F300, 0x1FAFF),
    (0x1D400, 0x1D7FF), (0x300, 0x36F),
)  # fmt: skip
"""Ranges of characters that a text is made of."""
PIECES = (
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "'s", "'LL", "don't", "I've", "123",
    "3.14", "1000000", "0x1F", "def f(x):\n    return x ** 2\n", "for (int i = 0; i < n; ++i) {",
    "</div>",
    "https://example.com/a?b=c", "a_b-c.d", "!=", "...", "--", "\u2026", "\u201cquoted\u201d",
    "e\u0301", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1eb\U0001f1f7", "\ufe0f",
    "\u200b", "\u3000",
)  # fmt: skip
"""Pieces that texts have between words."""

PEER = """
import json, sys, urllib.request
import xllamacpp as x
params = x.CommonParams()
params.model.path, params.n_ctx, params.port, params.warmup = sys.argv[1], 64, 0, False
server = x.Server(params)
found = []
for text in json.load(open(sys.argv[2])):
    body = json.dumps({"content": text, "add_special": False, "parse_special": False}).encode()
    asked = urllib.request.Request(server.listening_address + "/tokenize", body,
                                   {"Content-Type": "application/json"})
    found.append(json.load(urllib.request.urlopen(asked))["tokens"])
json.dump(found, open(sys.argv[3], "w"))
"""


@dataclass(frozen=True)
class Compared:
    """Texts of a vocabulary, and those whose tokens differ."""

    count: int
    different: list[str]


def made_texts(count: int, seed: int = 1) -> list[str]:
    """Make texts of words of a script or two, with pieces between them."""
    random, texts = Random(seed), []
    for _ in range(count):
        scripts = random.sample(SCRIPTS, 2)
        parts = []
        for _ in range(random.randrange(1, 12)):
            first, last = random.choice(scripts)
            length = random.randrange(1, 8)
            parts.append("".join(chr(random.randint(first, last)) for _ in range(length)))
            parts.append(random.choice(PIECES))
        texts.append("".join(parts))
    return texts


def stored_texts(path: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield the texts beside a vocabulary with their tokens."""
    texts = Path(f"{path}.inp").read_bytes().decode().split(SEPARATOR)
    tokens = Path(f"{path}.out").read_text().split("\n")
    for each, line in zip(texts, tokens[: len(texts)], strict=True):
        yield each, [int(number) for number in line.split()]


def small_model(path: Path) -> bytes:
    """Write a decoder of one layer with the vocabulary of a file."""
    cursor = Cursor(memoryview(path.read_bytes()), str(path))
    cursor.skip(16, 1, "the head")
    kept, count = b"", cursor.u64("the number of keys")
    tokens = 0
    for _ in range(count):
        start = cursor.place
        key = cursor.text("a key", 1 << 16)
        found = read_field(cursor, key)
        if key.startswith("tokenizer."):
            kept += bytes(cursor.data[start : cursor.place])
        if key == "tokenizer.ggml.tokens":
            tokens = found.count  # type: ignore[union-attr]
    fields = {
        "general.architecture": "llama", "llama.block_count": ("u32", 1),
        "llama.context_length": ("u32", 64), "llama.embedding_length": ("u32", WIDTH),
        "llama.feed_forward_length": ("u32", WIDTH), "llama.attention.head_count": ("u32", 2),
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.vocab_size": ("u32", tokens),
        "llama.rope.dimension_count": ("u32", LENGTH),
    }  # fmt: skip
    shapes = {"token_embd": (tokens, WIDTH), "output_norm": (WIDTH,), "blk.0.attn_norm": (WIDTH,),
              "blk.0.ffn_norm": (WIDTH,)}  # fmt: skip
    shapes |= {
        f"blk.0.{name}": (WIDTH, WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    }
    return _written(fields, kept, {f"{name}.weight": shape for name, shape in shapes.items()})


def _written(fields: dict[str, object], kept: bytes, shapes: dict[str, tuple[int, ...]]) -> bytes:
    rows, data = [], b""
    for name, shape in shapes.items():
        tensor = Tensor.floats(np.ones(shape, np.float32))
        rows.append(row(name, tensor, len(data)))
        data += tensor.raw
    count = len(fields) + _pairs_in(kept)
    head = b"GGUF" + (3).to_bytes(4, "little") + len(shapes).to_bytes(8, "little")
    head += count.to_bytes(8, "little") + pairs(fields) + kept + b"".join(rows)
    return head + b"\0" * (-len(head) % 32) + data


def _pairs_in(raw: bytes) -> int:
    cursor, count = Cursor(memoryview(raw), "kept"), 0
    while cursor.left:
        key = cursor.text("a key", 1 << 16)
        read_field(cursor, key)
        count += 1
    return count


def peer_tokens(path: Path, texts: list[str], python: str) -> list[list[int]]:
    """Return the tokens that llama.cpp finds."""
    with tempfile.TemporaryDirectory() as folder:
        model, given, found = (Path(folder) / name for name in ("m.gguf", "in.json", "out.json"))
        model.write_bytes(small_model(path))
        given.write_text(json.dumps(texts))
        command = [python, "-c", PEER, str(model), str(given), str(found)]
        subprocess.run(command, check=True, capture_output=True)
        tokens: list[list[int]] = json.loads(found.read_text())
        return tokens


def compared(tokenizer: Tokenizer, texts: list[str], wanted: list[list[int]]) -> Compared:
    """Compare the tokens of texts, control tokens among them read letter by letter."""
    different = [
        each
        for each, tokens in zip(texts, wanted, strict=True)
        if tokenizer.encode(each, special=False, begin=False, end=False) != tokens
    ]
    return Compared(len(texts), different)


def main() -> None:
    """Print a row for each vocabulary; exit with 1 if a text has other tokens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter with xllamacpp")
    parser.add_argument("--texts", type=int, default=2000, metavar="N")
    options = parser.parse_args()
    texts, is_equal = made_texts(options.texts), True
    for path in sorted(options.folder.glob("ggml-vocab-*.gguf")):
        began = time.perf_counter()
        try:
            tokenizer = Tokenizer.open(path)
        except GraphError as error:
            print(f"{path.stem}: refused: {str(error)[:90]}")
            continue
        took = time.perf_counter() - began
        rows = []
        if Path(f"{path}.inp").exists():
            given, wanted = zip(*stored_texts(path), strict=True)
            rows.append(("stored", compared(tokenizer, list(given), list(wanted))))
        if options.peer:
            tokens = peer_tokens(path, texts, options.peer)
            rows.append(("made", compared(tokenizer, texts, tokens)))
        for name, found in rows:
            print(f"{path.stem}: {name} {found.count}, different {len(found.different)}"
                  f" {found.different[:1]!r} (opened in {took:.2f} s)")  # fmt: skip
            is_equal &= not found.different
    sys.exit(not is_equal)


if __name__ == "__main__":
    main()
