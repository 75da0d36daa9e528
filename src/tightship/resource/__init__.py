"""How memory is obtained."""

from tightship._core import HostBlock, HostResource

__all__ = ["HostBlock", "HostResource"]
