"""Reads records back, the newest first, and names the machine that they come from."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks.record import RESULTS

Row = Mapping[str, Any]


def records(name: str) -> list[Row]:
    """Lines of `results/NAME.json`, the newest first."""
    path = RESULTS / f"{name}.json"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in reversed(lines)]


def newest_of_each(runs: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, Row]:
    """Return the first record of each key, the keys in order."""
    found: dict[Any, Row] = {}
    for record in runs:
        found.setdefault(key(record), record)
    return dict(sorted(found.items()))


def machine(*sources: Row) -> str:
    """Name the processor, instruction set, cores, dates and commits that records come from."""
    processors = sorted({_processor(record) for record in sources})
    dates = sorted({record["date"][:10] for record in sources})
    commits = sorted({record["commit"].rstrip("+") for record in sources})
    versions = sorted({record["versions"]["onnxruntime"] for record in sources})
    return (
        f"{' and '.join(processors)}; {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; "
        f"commit {', '.join(commits)}; ONNX Runtime {' and '.join(versions)}"
    )


def _processor(record: Row) -> str:
    name = record["cpu"].replace("(R)", "").removesuffix(" Processor")
    isa = isa_of(record)
    return f"{name}{f' with {isa}' if isa else ''}, {record['cpus']} cores"


def isa_of(record: Row) -> str:
    """Name the instruction set of a record's processor; empty if the record does not say."""
    return record.get("isa") or _isa(record.get("runtime", {}).get("cpu_isa", ""))


def _isa(library_name: str) -> str:
    """Name oneDNN's instruction set as newer records do; empty if it is neither of these."""
    names = {"amx": "AMX", "avx512": "AVX-512", "avx2": "AVX2", "sse41": "SSE4.1"}
    return next((name for part, name in names.items() if part in library_name), "")


def mb(size_bytes: int) -> str:
    """Write a size in whole megabytes."""
    return f"{size_bytes / 1e6:.0f}"
