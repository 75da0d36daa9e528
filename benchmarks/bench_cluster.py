"""Models on a cluster of Ray: memory of replicas, hops and throughput of stages, and cuts.

    python -m benchmarks.bench_cluster --record
    python -m benchmarks.bench_cluster split --sets 50

`replicas` needs Ray and ONNX Runtime, `pipeline` Ray; `split` needs neither.
"""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks import cluster_pipeline, cluster_replicas, cluster_split, record

SUITES = ("replicas", "pipeline", "split")


def main() -> None:
    """Measure the suites named, by default all; print them, and keep them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], metavar="SUITE")
    parser.add_argument("--sets", type=int, default=cluster_split.SETS, help="sets of nodes")
    parser.add_argument("--folder", type=Path, help="where models are kept")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    options = parser.parse_args()
    suites = options.suites or SUITES
    with tempfile.TemporaryDirectory() as folder:
        place = options.folder or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        figures: dict[str, object] = {}
        if suites != ["split"]:
            figures["ray"] = record.version_of("ray")
        if "replicas" in suites:
            figures["replicas"] = cluster_replicas.measured(place)
        if "pipeline" in suites:
            figures["pipeline"] = cluster_pipeline.measured(place)
        if "split" in suites:
            figures["split"] = [
                cluster_split.measured(name, place, options.sets) for name in cluster_split.NETWORKS
            ]
    print(json.dumps(figures, indent=1))
    if options.record:
        record.append("bench_cluster", figures)


if __name__ == "__main__":
    main()
