"""Who holds which bytes of a driver, at one moment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The process at the other end of a connection, as it was when it connected.

    Attributes:
        connection: Its number, never given twice; 0 is the driver itself.
        pid: 0 where the kernel does not say: the process is of another pid namespace.
        name: Of its program.
    """

    connection: int
    user: int
    pid: int = 0
    name: str = ""

    def __str__(self) -> str:
        return f"client {self.connection} (`{self.name}`, pid {self.pid}, uid {self.user})"


DRIVER = Caller(0, 0)


@dataclass(frozen=True, slots=True)
class PoolShare:
    """Memory of a client that the driver has a hold of.

    Attributes:
        mode: `sealed`, `copy`, `isolated` or `dma_buf`.
        is_registered: False once the client has forgotten it and something still uses it.
        pss_bytes: What of it is the driver's: its resident pages, each divided by the processes
            that have it mapped. 0 where it is not mapped.
    """

    number: int
    kind: str
    mode: str
    size_bytes: int
    is_registered: bool = True
    pss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BufferShare:
    """A buffer in the driver."""

    token: int
    size_bytes: int
    is_filled: bool


@dataclass(frozen=True, slots=True)
class ModelShare:
    """A model.

    Attributes:
        weights_bytes: Of its own; 0 for one of the driver, and where they are a file's.
        arena_bytes: What one run of it takes of the arenas.
    """

    number: int
    name: str = ""
    weights_bytes: int = 0
    arena_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Holdings:
    """What one client has in the driver.

    Attributes:
        is_connected: False once it is gone and something of it still runs.
    """

    caller: Caller
    is_connected: bool = True
    pools: tuple[PoolShare, ...] = ()
    buffers: tuple[BufferShare, ...] = ()
    models: tuple[ModelShare, ...] = ()

    @property
    def pss_bytes(self) -> int:
        """Of the pools."""
        return sum(pool.pss_bytes for pool in self.pools)

    @property
    def buffer_bytes(self) -> int:
        """Of the buffers."""
        return sum(buffer.size_bytes for buffer in self.buffers)

    @property
    def weights_bytes(self) -> int:
        """Of the models."""
        return sum(model.weights_bytes for model in self.models)

    @property
    def total_bytes(self) -> int:
        """What of the driver's memory is there for the client."""
        return self.pss_bytes + self.buffer_bytes + self.weights_bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a driver holds.

    Attributes:
        driver: The process itself, with the models that it was started with.
        clients: In the order they connected.
        arena_bytes: Memory of arenas, which runs of all clients take in turns.
        pss_bytes: Of the whole process.
    """

    driver: Holdings
    clients: tuple[Holdings, ...] = ()
    arena_bytes: int = 0
    pss_bytes: int = 0
