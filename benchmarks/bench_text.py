"""Speed and memory of a language model in a GGUF file, from the file itself, beside others.

    python -m benchmarks.bench_text MODEL.gguf --peer FOLDER [--quick] [--json] [--record]

The contenders, their turns and the clocks are those of bench_llama; Tightship loads the GGUF file
here. Besides prompts, steps and memory:

- the first token: from the start of a process, with the file in the page cache, until the logits of
  a prompt of five tokens are there, by the wall and in processor time; and `tightship generate`,
  which has a vocabulary too, until it has printed one token and ended. The round that keeps
  programs is left out; `--anew` makes them each time. That round writes the modules' bytecode too,
  which pip does as it installs a package: compiling them takes a third of such a process's time;
- sessions of one process of the first contender: tokens per second of eight that step together,
  over those of one, and over the speed of a prompt of 512.

llama.cpp rounds activations to int8 wherever weights are quantised; its equal of Tightship is
`--kinds tightship-int8-float16,llama.cpp`, whose caches are those of llama.cpp, too.
`openvino-genai` and `onnxruntime-genai` are further peers, where these packages are installed and
the file is a Llama of Q4_0 or Q8_0; see genai_contender.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import bench_llama, genai_contender, llama_peer, record
from benchmarks.bench_llama import CONTEXTS, SPEED_CONTEXT, Files, Turns, contender

PROMPT = 5
TOGETHER, PAST, STEPS = 8, 128, 33
SHARED, UNREPACKED = "tightship-shared", "llama.cpp-unrepacked"
COMMANDS = {"tightship generate": (), "tightship generate --share": ("--share",),
            "tightship generate --anew": ("--anew",)}  # fmt: skip


def main() -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", type=Path, help="a language model")
    parser.add_argument("--peer", type=Path, help="folder of llama.cpp's build")
    parser.add_argument(
        "--kinds",
        default="tightship,llama.cpp",
        help="contenders, ours first: tightship, tightship-int8-float16 or tightship-int8",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="of speed")
    parser.add_argument("--quick", action="store_true", help="one round, short texts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    parser.add_argument("--note", default="", help="what else ran on the machine; recorded")
    options = parser.parse_args()
    kinds, rounds = options.kinds.split(","), 1 if options.quick else options.rounds
    if "llama.cpp" in kinds and options.peer is None:
        parser.error("llama.cpp needs `--peer FOLDER`, a folder for its build.")
    found: dict[str, Any] = {"model": options.gguf.name, "note": options.note,
                             "clock": options.clock}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ):
        os.environ["TIGHTSHIP_CACHE_DIR"] = f"{folder}/prepared"
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy starts some at its import
        peer = llama_peer.driver(options.peer.resolve()) if "llama.cpp" in kinds else Path()
        files = Files(options.gguf, options.gguf, peer, Path(folder))
        for kind in set(kinds).intersection(genai_contender.KINDS):
            (files.others / kind).mkdir()
            genai_contender.write(options.gguf, files.others / kind, kind)
        threads = [int(each) for each in options.threads.split(",")]
        found["speed"] = [
            row
            for count in threads
            for row in bench_llama.speed(
                files, kinds, Turns(count, rounds, options.clock), is_quick=options.quick
            )
        ]
        found["first_token"] = first_token(files, kinds, max(threads), rounds)
        found["together"] = [
            together(files, kinds[0], Turns(count, 3, options.clock), is_quick=options.quick)
            for count in threads
        ]
        found["memory"] = bench_llama.memory(files, kinds, is_quick=options.quick)
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    if options.record:
        record.append("bench_text", found)


def first_token(files: Files, kinds: Sequence[str], threads: int, rounds: int) -> list[Any]:
    """Time processes until the first token; a row for each contender, the first round left out."""
    more = {"tightship": SHARED, "llama.cpp": UNREPACKED}
    every = [*kinds, *(more[kind] for kind in kinds if kind in more)]
    texts = [name for name in COMMANDS if "tightship" in kinds]
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in (*every, *texts)}
    for turn in range(rounds + 1):
        for name in list(figures)[:: 1 if turn % 2 else -1]:
            if name in COMMANDS:
                figures[name].append(_generated(files.gguf, COMMANDS[name], threads))
            else:
                figures[name].append(_began(files.command(name, CONTEXTS[0], threads), threads))
    return [
        {"kind": name, "threads": threads,
         "wall_s": statistics.median(wall for wall, _ in each[1:]),
         "processor_s": statistics.median(cpu for _, cpu in each[1:])}
        for name, each in figures.items()
    ]  # fmt: skip


def _began(command: Sequence[str], threads: int) -> tuple[float, float]:
    """Return seconds by the wall and of processors until a short prompt is computed."""
    start = time.perf_counter()
    with contender(command) as made:
        made.answer()
        made.ask(f"prompt {PROMPT} {threads}")
        return time.perf_counter() - start, made.processor_s()


def _generated(gguf: Path, more: Sequence[str], threads: int) -> tuple[float, float]:
    """Return seconds by the wall and of processors of a command that prints one token."""
    command = [sys.executable, "-m", "tightship.cli", "generate", str(gguf), "-p", "Hello there",
               "--max-tokens", "1", "--threads", str(threads), *more]  # fmt: skip
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return wall, spent


def together(files: Files, kind: str, turns: Turns, *, is_quick: bool) -> dict[str, Any]:
    """Return tokens per second of one session, of several together, and of a prompt."""
    threads = turns.threads
    past, steps, prompt = (16, 4, 16) if is_quick else (PAST, STEPS, 512)
    with contender(files.command(kind, SPEED_CONTEXT, threads)) as made:
        made.answer()
        rates = {
            name: statistics.median(
                made.rate(f"{command} {threads}", turns.clock) for _ in range(turns.rounds)
            )
            for name, command in (
                ("one", f"together {1} {steps} {past}"),
                ("together", f"together {TOGETHER} {steps} {past}"),
                ("prompt", f"prompt {prompt}"),
            )
        }
    return {"kind": kind, "sessions": TOGETHER, "threads": threads, "tokens_per_s": rates,
            "ratio_to_one": rates["together"] / rates["one"],
            "ratio_to_prompt": rates["together"] / rates["prompt"]}  # fmt: skip


def show(found: dict[str, Any]) -> None:
    """Print what was measured."""
    bench_llama.show(found)
    for row in found["first_token"]:
        print(f"{row['kind']:26s} {row['threads']} threads: first token after {row['wall_s']:.3f} s"
              f", {row['processor_s']:.3f} s of processors")  # fmt: skip
    for row in found["together"]:
        rates = "  ".join(f"{kind} {rate:.1f}" for kind, rate in row["tokens_per_s"].items())
        ratios = f"{row['ratio_to_one']:.2f} of one, {row['ratio_to_prompt']:.2f} of a prompt"
        print(f"{row['sessions']} sessions, {row['threads']} threads: {rates}   {ratios}")


if __name__ == "__main__":
    main()
