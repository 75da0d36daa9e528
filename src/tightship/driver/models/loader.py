"""Loading of graphs as programs, directly or through a temporary prepared file."""

import logging
import os

from tightship._core import StopFlag
from tightship.driver.memory.descriptor import seal_content
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import StoppedError, TightshipError
from tightship.graph import Graph
from tightship.graph.open_graphs import OpenGraphs
from tightship.loading import load, load_graph, load_open_graph
from tightship.loading.preparing import prepare_into
from tightship.model import Model

NAME = "model of a client"
PROGRAMS = 32
"""Input shapes for which a model of unknown lengths stays loaded."""

_LOG = logging.getLogger(__name__)


class Loader:
    """Loads models that share arenas."""

    def __init__(
        self,
        arenas: ArenaGroup,
        threads: int = 1,
        stop: StopFlag | None = None,
        programs: int = PROGRAMS,
    ) -> None:
        """Configure the loading.

        Args:
            arenas: Arenas that the models share.
            threads: Threads of their kernels.
            stop: Flag that is set when the result is no longer awaited.
            programs: Input shapes for which a model of unknown lengths stays loaded.
        """
        self._arenas = arenas
        self.threads = threads
        self._programs = programs
        self._stop = StopFlag() if stop is None else stop

    def go_on(self) -> None:
        """Raise if the result is no longer awaited.

        Raises:
            StoppedError: The flag to stop is set.
        """
        if self._stop.is_set():
            raise StoppedError("The model is no longer awaited; its preparation was stopped.")

    def _progress(self, *_: int) -> None:
        self.go_on()

    def model(self, source: Graph) -> Model:
        """Load a graph of known shapes.

        Raises:
            TightshipError: It cannot be run.
        """
        self.go_on()
        return load_graph(source, NAME, self.threads, self._arenas, progress=self._progress)

    def like(self, base: Model, graph: Graph) -> Model:
        """Load another program of a model over the same weights.

        Raises:
            TightshipError: It cannot be run.
        """
        threads = int(base.plan.key["threads"])
        return load_graph(graph, base.plan.model, threads, self._arenas, base)

    def open_model(self, graphs: OpenGraphs) -> Model:
        """Load a model whose graph depends on the input shapes, without a file.

        Raises:
            TightshipError: It cannot be run with the first shapes.
        """
        return load_open_graph(graphs, NAME, self.threads, self._arenas, self._programs)

    def once(self, programs: int = PROGRAMS) -> "Loader":
        """Return a loader that keeps no file."""
        return Loader(self._arenas, self.threads, self._stop, programs)

    def prepared(self, file: int) -> Model:
        """Load a prepared model from a file, which stays mapped when the descriptor is closed.

        Raises:
            TightshipError: It is not a prepared model, or it is for another version or processor.
        """
        return load(f"/proc/self/fd/{file}", arena_pool=self._arenas)


class KeepingLoader(Loader):
    """Loads models through prepared files and keeps the last file until `close`.

    A model that cannot be prepared is loaded directly, and no file is kept.
    """

    def __init__(self, arenas: ArenaGroup, threads: int = 1, stop: StopFlag | None = None) -> None:
        super().__init__(arenas, threads, stop)
        self.file: int | None = None

    def model(self, source: Graph) -> Model:
        """Load a graph through a file; errors as for `Loader.model`."""
        self.go_on()
        file = os.memfd_create("tightship prepared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            with open(os.dup(file), "r+b") as opened:
                prepare_into(opened, source, NAME, self.threads, self._progress)
            seal_content(file)
        except StoppedError:
            os.close(file)
            raise
        except (TightshipError, MemoryError, OSError) as error:
            os.close(file)
            _LOG.info("A client's model is not kept in its cache: %s", error)
            return super().model(source)
        self._keep(file)
        return super().prepared(file)

    def prepared(self, file: int) -> Model:
        """Load a prepared model and keep its file; errors as for `Loader.prepared`."""
        self._keep(os.dup(file))
        return super().prepared(file)

    def close(self) -> None:
        """Close the kept file."""
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def _keep(self, file: int) -> None:
        self.close()
        self.file = file
