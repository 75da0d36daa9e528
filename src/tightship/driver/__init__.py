"""Models and tensors shared between processes, by NNAPI's rules."""

from tightship.driver.client.building import ModelBuilder, tensor_type
from tightship.driver.client.client import Client

__all__ = ["Client", "ModelBuilder", "tensor_type"]
