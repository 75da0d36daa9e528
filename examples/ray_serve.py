"""A model on a cluster of Ray, served over HTTP in the memory that its plan states.

    python examples/ray_serve.py model.onnx                 until Ctrl-C
    python examples/ray_serve.py model.onnx --requests 3    some requests, then the end

It connects to the running cluster (`RAY_ADDRESS`), or starts one on this machine.
"""

import argparse
import time

import numpy as np
import ray
from ray import serve

import tightship
from tightship import cluster


def main() -> None:
    """Deploy a model, send it requests, and remove it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--replicas", default="auto")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--requests", type=int, default=0)
    options = parser.parse_args()
    ray.init(log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": options.port})
    count = options.replicas if options.replicas == "auto" else int(options.replicas)
    handle = serve.run(cluster.deployment(options.model, replicas=count))
    with tightship.load(options.model) as model:
        inputs = {
            name: np.zeros(shape, dtype.numpy) for name, (dtype, shape) in model.input_types.items()
        }
    try:
        for _ in range(options.requests):
            results = handle.run.remote(inputs).result()
            print({name: array.shape for name, array in results.items()})
        while not options.requests:
            time.sleep(1)
    finally:
        serve.shutdown()


if __name__ == "__main__":
    main()
