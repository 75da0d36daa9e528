"""A loaded model, and callers' arrays bound to its runs."""

from tightship.model.feeds import Array
from tightship.model.loaded import LOADED, Model

__all__ = ["LOADED", "Array", "Model"]
