"""What a prepared model depends on besides the model."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from tightship._core import kernel_cpu
from tightship.engine.library import library_key

VERSION = "0.1.0"
"""Of Tightship: what one version wrote, others do not run."""
WITHOUT_LIBRARY = {"kernels": "NumPy only"}
NATIVE = "native only"
"""In place of a library, where no program needs one."""


@dataclass(frozen=True, slots=True)
class Compatibility:
    """What a prepared model depends on besides the model; others cannot run it.

    Attributes:
        version: Of Tightship.
        library: The library's version and CPU features; those of our kernels where all are.
        threads: Of each kernel.
        without: Passes left out.
    """

    version: str
    library: Mapping[str, str]
    threads: int
    without: tuple[str, ...]

    @classmethod
    def here(cls, threads: int, without: Collection[str]) -> "Compatibility":
        """What is prepared in this process; the library is open, unless it is left out."""
        library = WITHOUT_LIBRARY if "onednn" in without else library_key()
        return cls(VERSION, library, threads, tuple(sorted(without)))

    @property
    def needs_library(self) -> bool:
        """Whether programs have steps or layouts of the library."""
        return "kernels" not in self.library

    def without_library(self) -> "Compatibility":
        """The same, of programs whose steps are all run by our kernels."""
        return replace(self, library={"kernels": NATIVE, "cpu": kernel_cpu()})

    def as_here(self) -> "Compatibility":
        """The same, were it prepared in this process; the library is open if it is needed."""
        here = Compatibility.here(self.threads, self.without)
        return here.without_library() if self.library.get("kernels") == NATIVE else here
