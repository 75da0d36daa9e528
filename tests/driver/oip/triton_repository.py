"""Repositories of models in Triton's layout."""

import onnx

from tests.models import parse

ADDED = """m (float[n,4] x) => (float[n,4] y) {{
    added = Constant<value_float = {addend}.0> ()
    y = Add(x, added)
}}"""
FIXED = ADDED.replace("float[n,4]", "float[2,4]")
CONFIG = """
name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [{{ name: "x" data_type: TYPE_FP32 dims: [4] }}]
output [{{ name: "y" data_type: TYPE_FP32 dims: [4] }}]
"""


def write_version(folder, version, addend=None, *, text=ADDED):
    """Write a version of a model that adds a number, by default its own, to rows of four."""
    path = folder / str(version) / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    onnx.save(parse(text.format(addend=version if addend is None else addend)), new)
    new.rename(path)


def write_model(repository, name, versions=(1,), more="", config=CONFIG):
    """Write a model with a configuration, and return its folder."""
    folder = repository / name
    for version in versions:
        write_version(folder, version)
    (folder / "config.pbtxt").write_text(config.format(name=name) + more)
    return folder
