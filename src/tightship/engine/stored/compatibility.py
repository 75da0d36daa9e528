"""Compatibility of a prepared model with a process."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tightship._core import kernel_cpu, version
from tightship.engine.library import library_key

VERSION = version()
"""Version of Tightship; a file of another version is refused."""
WITHOUT_LIBRARY = {"kernels": "NumPy only"}
NATIVE = "native only"
"""Stands in place of a library if no program needs one."""


class Compatibility(NamedTuple):
    """Environment that a prepared model needs to run.

    Attributes:
        version: Version of Tightship.
        library: Library version and CPU features; the CPU of our kernels if all steps are theirs.
        threads: Threads of each kernel.
        without: Names of passes left out.
        workers: Steps that run at once.
    """

    version: str
    library: Mapping[str, str]
    threads: int
    without: tuple[str, ...]
    workers: int = 1

    @classmethod
    def here(cls, threads: int, without: Collection[str], workers: int = 1) -> "Compatibility":
        """Describe what this process prepares; the library must be open unless it is left out."""
        library = WITHOUT_LIBRARY if "onednn" in without else library_key()
        return cls(VERSION, library, threads, tuple(sorted(without)), workers)

    @property
    def needs_library(self) -> bool:
        """Whether programs have steps or layouts of the library."""
        return "kernels" not in self.library

    def without_library(self) -> "Compatibility":
        """Return a copy for programs whose steps are all run by our kernels."""
        return self._replace(library={"kernels": NATIVE, "cpu": kernel_cpu()})

    def is_part_of(self, other: "Compatibility") -> bool:
        """Whether what another preparation needs suffices for programs of this one."""
        library = self.library if self.needs_library else other.library
        return other == self._replace(library=library)

    def as_here(self) -> "Compatibility":
        """Describe the same preparation in this process; the library must be open if needed."""
        here = Compatibility.here(self.threads, self.without, self.workers)
        return here.without_library() if self.library.get("kernels") == NATIVE else here
