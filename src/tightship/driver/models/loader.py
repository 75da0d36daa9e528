"""From graphs to programs, directly or by way of a file that is kept for a while."""

import logging
import os

from tightship._core import StopFlag
from tightship.driver.memory.descriptor import seal_content
from tightship.engine.arenas.joint_arenas import JointArenas
from tightship.errors import StoppedError, TightshipError
from tightship.graph import Graph
from tightship.graph.open_graphs import OpenGraphs
from tightship.loading import load, load_graph, load_open_graph
from tightship.loading.preparing import prepare_into
from tightship.model import Model

NAME = "model of a client"
PROGRAMS = 32
"""Input shapes that a model of open ones stays ready for."""

_LOG = logging.getLogger(__name__)


class Loader:
    """Loads models that take arenas in turns, for kernels of so many threads."""

    def __init__(
        self,
        arenas: JointArenas,
        threads: int = 1,
        stop: StopFlag | None = None,
        programs: int = PROGRAMS,
    ) -> None:
        """Of them.

        Args:
            arenas: They take them in turns.
            threads: Of their kernels.
            stop: Is set when nobody waits for what is loaded any more.
            programs: Input shapes that a model of open ones stays ready for.
        """
        self._arenas = arenas
        self.threads = threads
        self._programs = programs
        self._stop = StopFlag() if stop is None else stop

    def go_on(self) -> None:
        """Stop here if nobody waits.

        Raises:
            StoppedError: Nobody does.
        """
        if self._stop.is_set():
            raise StoppedError("Nobody waits for the model any more.")

    def _progress(self, *_: int) -> None:
        self.go_on()

    def model(self, source: Graph) -> Model:
        """A model from a graph whose shapes are known.

        Raises:
            TightshipError: It cannot be run.
        """
        self.go_on()
        return load_graph(source, NAME, self.threads, self._arenas, progress=self._progress)

    def like(self, base: Model, graph: Graph) -> Model:
        """Another program for what a model computes, over its weights.

        Raises:
            TightshipError: It cannot be run.
        """
        threads = int(base.plan.key["threads"])
        return load_graph(graph, base.plan.model, threads, self._arenas, base)

    def open_model(self, graphs: OpenGraphs) -> Model:
        """A model whose graph is another for each set of input shapes; nothing is kept of it.

        Raises:
            TightshipError: It cannot be run with the first ones.
        """
        return load_open_graph(graphs, NAME, self.threads, self._arenas, self._programs)

    def once(self, programs: int = PROGRAMS) -> "Loader":
        """One that keeps nothing in a file."""
        return Loader(self._arenas, self.threads, self._stop, programs)

    def prepared(self, file: int) -> Model:
        """A prepared model from its file, which stays mapped; the descriptor does not matter.

        Raises:
            TightshipError: It is none, or is for something else.
        """
        return load(f"/proc/self/fd/{file}", arena_pool=self._arenas)


class KeepingLoader(Loader):
    """Loads models by way of prepared files; the last file is kept until `close`.

    A model that cannot be prepared is loaded without, and nothing is kept.
    """

    def __init__(self, arenas: JointArenas, threads: int = 1, stop: StopFlag | None = None) -> None:
        super().__init__(arenas, threads, stop)
        self.file: int | None = None

    def model(self, source: Graph) -> Model:
        """As `Loader.model`."""
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
        """As `Loader.prepared`."""
        self._keep(os.dup(file))
        return super().prepared(file)

    def close(self) -> None:
        """Keep nothing any more."""
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def _keep(self, file: int) -> None:
        self.close()
        self.file = file
