"""Bytes that each client holds in a driver, at one moment."""

from dataclasses import dataclass

from tightship.brief import brief


@dataclass(frozen=True, slots=True)
class Caller:
    """Process at the other end of a connection, as it was when it connected.

    Attributes:
        connection: Number of the connection, never reused; 0 is the driver itself.
        pid: Process number; 0 for a process of another pid namespace.
        name: Name of its program.
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
    """Memory of a client that the driver uses.

    Attributes:
        mode: `sealed`, `copy`, `isolated` or `dma_buf`.
        is_registered: False once the client has released it while something still uses it.
        pss_bytes: Proportional set size: resident pages, each divided by the number of processes
            that map it. 0 if the pool is not mapped.
    """

    number: int
    kind: str
    mode: str
    size_bytes: int
    is_registered: bool = True
    pss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BufferShare:
    """Buffer allocated in the driver."""

    token: int
    size_bytes: int
    is_filled: bool


@dataclass(frozen=True, slots=True)
class ModelShare:
    """Model of a client or of the driver.

    Attributes:
        weights_bytes: Bytes that belong to it alone; 0 for a model of the driver and for weights
            mapped from a file.
        arena_bytes: Bytes of the arenas that a run takes.
    """

    number: int
    name: str = ""
    weights_bytes: int = 0
    arena_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Holdings:
    """Memory and models of one client.

    Attributes:
        is_connected: False once the client is gone while something of it still runs.
    """

    caller: Caller
    is_connected: bool = True
    pools: tuple[PoolShare, ...] = ()
    buffers: tuple[BufferShare, ...] = ()
    models: tuple[ModelShare, ...] = ()

    @property
    def pss_bytes(self) -> int:
        """Proportional set size of all pools."""
        return sum(pool.pss_bytes for pool in self.pools)

    @property
    def buffer_bytes(self) -> int:
        """Size of all buffers."""
        return sum(buffer.size_bytes for buffer in self.buffers)

    @property
    def weights_bytes(self) -> int:
        """Size of the weights of all models."""
        return sum(model.weights_bytes for model in self.models)

    @property
    def total_bytes(self) -> int:
        """Bytes of the driver's memory that serve the client."""
        return self.pss_bytes + self.buffer_bytes + self.weights_bytes


@brief
@dataclass(frozen=True, slots=True)
class Snapshot:
    """Holdings of a driver and its clients.

    Attributes:
        driver: The process itself, with the models that it was started with.
        clients: Clients in the order of their connections.
        arena_bytes: Memory of the arenas that runs of all clients share.
        pss_bytes: Proportional set size of the process.
    """

    driver: Holdings
    clients: tuple[Holdings, ...] = ()
    arena_bytes: int = 0
    pss_bytes: int = 0
