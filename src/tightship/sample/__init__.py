"""Writes sample networks to ONNX files: known sizes, an open batch, and weights from a seed.

The memory note's networks are among them, so that its figures can be made again from an
installation: `tightship sample inception_bn -o inception_bn.onnx`.
"""

from tightship.sample.samples import SAMPLES, sample

__all__ = ["SAMPLES", "sample"]
