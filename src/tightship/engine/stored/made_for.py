"""What a prepared model depends on besides the model."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tightship.engine.library import library_key

VERSION = "0.1.0"
"""Of Tightship: what one version wrote, others do not run."""
WITHOUT_LIBRARY = {"kernels": "NumPy only"}


@dataclass(frozen=True, slots=True)
class MadeFor:
    """What a prepared model depends on besides the model; others cannot run it.

    Attributes:
        version: Of Tightship.
        library: The library's version and CPU features.
        threads: Of each kernel.
        without: Passes left out.
    """

    version: str
    library: Mapping[str, str]
    threads: int
    without: tuple[str, ...]

    @classmethod
    def here(cls, threads: int, without: Collection[str]) -> "MadeFor":
        """What is prepared in this process; the library is open, unless it is left out."""
        library = WITHOUT_LIBRARY if "onednn" in without else library_key()
        return cls(VERSION, library, threads, tuple(sorted(without)))
