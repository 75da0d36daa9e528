"""Loaded models, and callers' arrays bound to their runs."""

from tightship.model.feeds import Array
from tightship.model.loaded import LOADED, Model

__all__ = ["LOADED", "Array", "Model"]
