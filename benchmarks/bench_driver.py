"""Speed of a driver beside other ways into another process, and whether anything leaks.

python -m benchmarks.bench_driver
python -m benchmarks.bench_driver --quick
python -m benchmarks.bench_driver --triton 127.0.0.1:8000,127.0.0.1:8001 --ray
"""

import argparse
import importlib
import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from benchmarks import driver_leaks, driver_native, record

NEEDED = ("uvicorn", "grpc", "tritonclient")
"""Modules without which HTTP and gRPC are not measured."""


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_driver")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; record nothing")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--ray", action="store_true", help="measure Ray as well")
    parser.add_argument("--triton", default="", metavar="HTTP,GRPC", help="of a Triton server")
    parser.add_argument("--only-native", action="store_true", help="leave HTTP and gRPC out")
    options = parser.parse_args()
    terms = {"quick": options.quick, "threads": options.threads}
    figures: dict[str, object] = {"threads": options.threads}
    line = None if options.quick else record.begin("bench_driver")
    figures["native"] = shown(driver_native.rows(**terms, with_ray=options.ray))
    figures["independence"] = shown(driver_native.independence(**terms))
    (figures["recurrent"],) = shown([driver_native.recurrent(**terms)])
    (figures["leaks"],) = shown([driver_leaks.row(quick=options.quick)])
    if line is not None:
        line.write(figures)
    if not options.only_native and all(map(find_spec, NEEDED)):
        endpoints = importlib.import_module("benchmarks.driver_oip")
        figures["endpoints"] = shown(endpoints.rows(quick=options.quick, triton=options.triton))
        if line is not None:
            line.write(figures)


def shown(rows: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Rows as they come, printed."""
    kept = []
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        kept.append(row)
    return kept


if __name__ == "__main__":
    main()
