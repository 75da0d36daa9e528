"""The native core: placement, host memory, kernels, oneDNN, programs."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, SupportsIndex, overload

import numpy
from numpy.typing import NDArray


def lower_bound(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> int:
    """Bytes below which no placement of the buffers exists."""

def place_first_fit(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Offsets: each buffer as low as it goes."""

def place_stacked(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Offsets: each buffer on those before it."""

def place_best_gap(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Offsets: each buffer in its tightest gap."""

def place_best_fit(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Offsets as an allocator hands them out, step after step."""

def place_shared_objects(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], match_range: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Offsets: whole blocks, recycled and stacked."""

def place_lowest_first(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Offsets: always the buffer that can lie lowest."""

def place_promote(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: int, rounds: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    Offsets: the best of several rounds, each blaming what ended above the target.
    """

class Fit:
    """What the exact search found out."""

    @property
    def verdict(self) -> str: ...

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def conflict(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def bound(self) -> int: ...

    @property
    def effort(self) -> int: ...

    @property
    def nodes(self) -> int: ...

def search_fit(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], pins: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: int, effort: int, threads: int, stop: StopFlag | None) -> Fit:
    """Whether buffers fit a capacity, and where."""

class TableRefusal:
    """Why a table is refused, and where."""

    @property
    def fault(self) -> int: ...

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...

    @property
    def text(self) -> bytes: ...

class TableHeader:
    """The first line of a table."""

    @property
    def fields(self) -> list[bytes]: ...

    @property
    def refusal(self) -> TableRefusal: ...

class Table:
    """Rows of a table, by column."""

    def take_columns(self) -> list[Any]:
        """Integers, or a pair of text and where its words stop; once only."""

    def lines(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """The line of each row, from 1."""

    @property
    def refusal(self) -> TableRefusal: ...

def read_table_header(content: bytes) -> TableHeader:
    """The fields of the first line that is not empty."""

def read_table_rows(content: bytes, header: TableHeader, kinds: Sequence[int]) -> Table:
    """
    The rows after the header: integer 0, the same or nothing 1, words 2, not kept 3.
    """

def first_repeated_word(text: bytes, stop: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
    """The first word that is there before; their number if there is none."""

def write_table_rows(columns: Sequence[tuple[bytes | None, Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]]) -> bytes:
    """CSV of columns: text and where its words stop, or None and integers."""

def read_plan_rows(content: bytes) -> tuple[list[NDArray[numpy.int64]], tuple[bytes, NDArray[numpy.int64]] | None, int, int] | None:
    """
    Columns of the array `buffers` of a plan file, its names, where it begins and ends; None if it is not plain.
    """

def write_plan_rows(columns: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], text: bytes | None, stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
    """The elements of that array, from columns and names."""

def first_overlap(rectangles: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> tuple[int, int] | None:
    """
    Two of n rectangles that share a byte in a step; rows: sizes, starts, stops, offsets.
    """

class ItemFit:
    """What the exact search for items found out."""

    @property
    def found(self) -> Fit: ...

    @property
    def banks(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

def search_items(rectangles: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int64], dict(shape=(6, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], bank_columns: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], within: tuple[int, int, int], threads: int, stop: StopFlag | None) -> ItemFit:
    """
    Whether items fit their banks, within a cost, a peak and an effort, and where.
    """

def place_items(rectangles: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int64], dict(shape=(6, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], by_cost: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]:
    """
    Base and bank of each item: the first bank by cost and the lowest base it fits.
    """

def live_max(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """The largest load of a step of each lifetime."""

def sorted_rows(keys: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Rows by rising keys; the first counts most, ties go by index."""

class StepOrder:
    """Which steps come before which."""

    def __init__(self, steps: int, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)]) -> None: ...

    def before(self, arg0: int, arg1: int, /) -> bool: ...

    @property
    def chains(self) -> int: ...

class BufferOrder:
    """Which buffers come before which."""

    def __init__(self, steps: StepOrder, step: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stop: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def implied(self, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], alignment: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[tuple[int, int]]: ...

class BufferConflicts:
    """Which buffers must not share bytes."""

    def __init__(self, order: BufferOrder, group: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def meet(self, arg0: int, arg1: int, /) -> bool: ...

    def place(self, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], alignment: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tightest: bool) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """Offsets: each buffer in a gap that those before leave it."""

def needed_edges(steps: int, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], added: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Those of the edges added that follow from no others."""

class StepTraffic:
    """What steps do to bytes."""

    def __init__(self, cells: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], touched: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], scratch: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], over: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> None: ...

    def peak(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """The largest load of steps that run in an order."""

    def least_order(self, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], effort: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], int, bool]:
        """
        An order with a peak as low as was found, that peak, and whether no order has less.
        """

def min_cut(nodes: int, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], source: int, sink: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """1 for each node on the source's side of the cheapest cut, else 0."""

def reduce_reuse(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], penalties: Annotated[NDArray[numpy.int64], dict(shape=(None, 3), order='C', device='cpu', writable=False)], capacity: int, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], moves: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Offsets within a capacity at which fewer costly pairs share a byte."""

def release_code(path: str) -> None:
    """
    Drops the resident pages of a loaded library's code; they come back in small pieces as they run.
    """

def release_heap() -> None:
    """Gives whole free pages of the heap back to the system."""

def use_one_heap() -> None:
    """
    Has every thread allocate from one heap, all free pages of which can be given back; threads that have allocated before keep theirs.
    """

class ResourceStatistics:
    """
    What a memory resource has given and holds; exact while no other call is in flight.
    """

    @property
    def current_bytes(self) -> int:
        """Bytes in live blocks, as the resource rounds them."""

    @property
    def current_count(self) -> int:
        """Live blocks."""

    @property
    def reserved_bytes(self) -> int:
        """Bytes held to make blocks of, live ones included."""

    @property
    def touched_bytes(self) -> int:
        """Of those, what has ever been in blocks or between them."""

class MemoryResource:
    """
    Gives and takes back blocks of memory, from any thread. Neither copied nor pickled.
    """

    def allocate(self, size_bytes: int, alignment: int = 16) -> int:
        """
        Address of at least `size_bytes` bytes at a multiple of `alignment`.

        Raises OutOfMemoryError with the numbers, InputError for a size or an alignment that
        no resource serves.
        """

    def deallocate(self, address: int, size_bytes: int, alignment: int = 16) -> None:
        """
        Takes a block back, with the size and alignment it was asked for by.

        Raises InputError with the address and both sizes, and changes nothing, where no block
        of that size begins there or the address is not a multiple of `alignment`.
        """

    def allocate_many(self, count: int, size_bytes: int, alignment: int = 16) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """
        Addresses of `count` blocks: all of them, or OutOfMemoryError and none.
        """

    def deallocate_many(self, addresses: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], size_bytes: int, alignment: int = 16) -> None:
        """
        Takes blocks back; raises InputError where one is none, the others are taken.
        """

    def owns(self, address: int) -> bool:
        """Whether the byte lies in memory of this resource."""

    def trim(self) -> int:
        """Gives unused memory back upstream; returns its bytes."""

    @property
    def supports_free(self) -> bool:
        """Whether a block that is given back can be handed out again."""

    @property
    def largest_bytes(self) -> int:
        """
        No request for more can ever be met; 2**64 - 1 where only the system knows.
        """

    def statistics(self) -> ResourceStatistics: ...

    def __eq__(self, other: object | None) -> bool:
        """Whether blocks of one resource may be given back to the other."""

    def __hash__(self) -> int: ...

    def __copy__(self) -> None: ...

    def __deepcopy__(self, arg: object, /) -> None: ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str: ...

    def allocate_block(self, size_bytes: int, alignment: int = 16) -> Block:
        """
        A block that is given back when the last view of it dies.

        Raises as `allocate` does; a block of no bytes is one.
        """

class Block:
    """
    Bytes of a memory resource; given back when the last view of them dies.
    """

    @property
    def address(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def resource(self) -> MemoryResource: ...

    @property
    def __array_interface__(self) -> dict[str, object]: ...

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """The bytes as a uint8 array that keeps the block alive."""

    def __dlpack__(self, **options: object) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __len__(self) -> int: ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str: ...

    def __copy__(self) -> None: ...

    def __deepcopy__(self, arg: object, /) -> None: ...

def current_cpu() -> int:
    """The processor that the calling thread runs on, as of now."""

class PageResource(MemoryResource):
    """Whole pages, mapped for each block."""

    @property
    def current_bytes(self) -> int: ...

    @property
    def peak_bytes(self) -> int: ...

    @property
    def allocation_count(self) -> int:
        """Of all time."""

class HostResource(PageResource):
    """Zeroed pages of the process's own, huge ones where they fit."""

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *, node: int = -1, is_filled: bool = False, is_locked: bool = False) -> None:
        """
        Pages of NUMA node `node` while it has some, -1 for any; backed with memory at once,
        and kept there as far as the process may.
        """

    @property
    def locked_bytes(self) -> int:
        """Of all blocks of all time, what could be locked."""

class SharedResource(PageResource):
    """Pages of files, a file for each block; a fork shares them."""

    def descriptor_of(self, address: int) -> int:
        """The open file that a block is of, for another process to map."""

class SegmentResource(SharedResource):
    """Shared memory without a name."""

    def __init__(self) -> None: ...

class FileResource(SharedResource):
    """Files without a name in a folder, mapped."""

    def __init__(self, folder: str) -> None: ...

class RegionResource(MemoryResource):
    """Memory that the caller has: one block at a time of a writable buffer."""

    def __init__(self, buffer: object, *, is_shared: bool = False) -> None:
        """`is_shared` says that a fork does not copy the memory."""

class BumpResource(MemoryResource):
    """
    Blocks that end together: a pointer that moves forward, one for each processor.
    """

    def __init__(self, upstream: MemoryResource, size_bytes: int, part_count: int = 0, control: MemoryResource | None = None) -> None:
        """
        Takes `size_bytes` of `upstream`, in one part for each processor unless `part_count`
        says how many. `control` keeps the cursors, else the region itself does.
        """

    @property
    def capacity_bytes(self) -> int: ...

    @property
    def part_count(self) -> int: ...

    def reset(self) -> None:
        """Every block ends, and every mark. No thread may be allocating."""

    def mark(self) -> int:
        """Now, to `rewind` to. No thread may be allocating."""

    def rewind(self, mark: int) -> None:
        """
        Every block since the mark ends, and the marks since. No thread may be allocating.
        """

class SlabResource(MemoryResource):
    """Blocks of one size, a bit for each."""

    def __init__(self, upstream: MemoryResource, size_bytes: int, block_bytes: int, control: MemoryResource | None = None) -> None:
        """
        Takes `size_bytes` of `upstream` and cuts them into blocks of `block_bytes`, a
        multiple of 8. `control` keeps the bits, else the region itself does.
        """

    @property
    def capacity_bytes(self) -> int: ...

    @property
    def block_bytes(self) -> int: ...

    @property
    def block_count(self) -> int: ...

    @property
    def alignment(self) -> int:
        """The largest power of two that every block is at a multiple of."""

class CommittedRange:
    """Addresses of which the front is backed with zeroed private pages."""

    def __init__(self, capacity_bytes: int) -> None:
        """
        Whole pages of addresses, none of them backed.

        Raises MemoryError where the system has no such addresses.
        """

    @property
    def address(self) -> int: ...

    @property
    def capacity_bytes(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """Those that are backed."""

    def resize(self, size_bytes: int) -> bool:
        """
        Back so many bytes, and give what is behind them back to the system; what stays keeps
        its contents. False, and nothing changed, where the system refuses.
        """

    def discard(self, start: int, stop: int) -> int:
        """
        Give back the huge pages that lie wholly in bytes [start, stop); they are zeros when they
        are next touched. Returns how many bytes these are.
        """

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """
        What is backed now, as a uint8 array that keeps the range alive. Bytes of it that are
        given back later must not be touched.
        """

def default_slabs() -> list[tuple[int, float]]:
    """Block sizes and shares of a composite that is told of none."""

class FreeListResource(MemoryResource):
    """
    Blocks of any size that were given back, joined and cut to serve others.
    """

    def __init__(self, upstream: MemoryResource, *, best_fit: bool = True, chunk_bytes: int = 0, upstream_first: bool = False) -> None:
        """
        Serves from what came back, and asks `upstream` for the rest, at least `chunk_bytes`
        at once. `best_fit` false takes the first block of the plain list that is large
        enough; `upstream_first` uses the list only when upstream has no more.
        """

    @property
    def free_bytes(self) -> int: ...

    @property
    def free_count(self) -> int:
        """Blocks in the list."""

class CompositeResource(MemoryResource):
    """
    Slabs of several sizes, a bump for the rest, and a free list of what came back of it.
    """

    def __init__(self, upstream: MemoryResource, size_bytes: int, *, slabs: Sequence[tuple[int, float]] | None = None, best_fit: bool = True, free_list_last: bool = False) -> None:
        """
        Takes `size_bytes` of `upstream`. `slabs` are pairs of a block's bytes and the part of
        the region for such blocks, by rising size; `free_list_last` serves from what came
        back only when the bump is used up.
        """

    @property
    def slabs(self) -> list[SlabResource]: ...

    @property
    def bump(self) -> BumpResource: ...

    @property
    def free_list(self) -> FreeListResource: ...

class Adaptor(MemoryResource):
    """Changes how its upstream behaves; owns no memory."""

    @property
    def upstream(self) -> MemoryResource: ...

class LimitingResource(Adaptor):
    """No more than so many bytes at a time."""

    def __init__(self, upstream: MemoryResource, limit_bytes: int, *, setting: str = '') -> None:
        """
        Bytes count as they are asked for. Refusals name `setting` as what sets the limit.
        """

    @property
    def current_bytes(self) -> int: ...

    @property
    def limit_bytes(self) -> int: ...

class AlignedResource(Adaptor):
    """Coarser alignment than is asked for."""

    def __init__(self, upstream: MemoryResource, alignment: int, threshold_bytes: int = 0) -> None:
        """
        Blocks of `threshold_bytes` and more are at multiples of `alignment` at least.
        """

class ResourceCounters:
    """Of blocks that came within a scope: live now, at most, and in all."""

    @property
    def current_bytes(self) -> int:
        """Below 0 where older blocks ended."""

    @property
    def current_count(self) -> int: ...

    @property
    def peak_bytes(self) -> int: ...

    @property
    def peak_count(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

    @property
    def total_count(self) -> int: ...

class StatisticsResource(Adaptor):
    """Counts what is asked for, in scopes."""

    def __init__(self, upstream: MemoryResource) -> None: ...

    def counters(self) -> ResourceCounters:
        """Of the innermost scope."""

    def push(self) -> int:
        """Begins a scope at zero; returns how many there are now."""

    def pop(self, depth: int) -> ResourceCounters:
        """
        Ends the innermost scope, which `push` called `depth`, and adds it to the one around
        it. Raises InputError where that is not the innermost.
        """

class TracingResource(Adaptor):
    """A CSV line for each call: `Thread,Time,Action,Pointer,Size,Stream`."""

    def __init__(self, upstream: MemoryResource, path: str) -> None:
        """
        Writes over the file. Lines are held back until `flush`, or the resource's end.
        """

    def flush(self) -> None:
        """Raises InputError where a line could not be written, ever."""

    @property
    def path(self) -> str: ...

class FailingResource(Adaptor):
    """Refuses on purpose."""

    def __init__(self, upstream: MemoryResource, first: int, count: int = 1) -> None:
        """Refuses `count` allocations from number `first` on, counted from 1."""

    @property
    def allocation_count(self) -> int:
        """Asked for so far, refused ones included."""

class BinningResource(Adaptor):
    """Sizes that go to resources of their own."""

    def __init__(self, upstream: MemoryResource, bins: Sequence[tuple[int, MemoryResource]]) -> None:
        """
        `bins` are pairs of the largest size that goes to a resource, and the resource, by
        rising size. What has no bin goes to `upstream`; a bin that is full refuses.
        """

class FallbackResource(Adaptor):
    """One resource, and another for what it refuses."""

    def __init__(self, first: MemoryResource, second: MemoryResource) -> None:
        """
        Asks `first`, and `second` where that has no block. Each block goes back to the one
        that gave it.

        Raises InputError where both are the same resource.
        """

    @property
    def second(self) -> MemoryResource: ...

    @property
    def second_count(self) -> int:
        """Live blocks of the second one."""

class CombiningResource(Adaptor):
    """
    Threads that ask at the same time are served by one of them, with one call.
    """

    def __init__(self, upstream: MemoryResource) -> None: ...

    @property
    def handed_count(self) -> int:
        """Blocks that a thread was handed by another."""

class CallbackResource(MemoryResource):
    """Blocks that Python functions give and take back."""

    def __init__(self, allocate: Callable[[int, int], int], deallocate: Callable[[int, int, int], None]) -> None:
        """
        `allocate(size_bytes, alignment)` returns an address, 0 for none; what it raises is
        a refusal, and so is an address that is not aligned. `deallocate(address,
        size_bytes, alignment)` takes it back.
        """

    def __del__(self) -> None: ...

class FailureCallbackResource(Adaptor):
    """Asks again where a function says so."""

    def __init__(self, upstream: MemoryResource, callback: Callable[[int], bool]) -> None:
        """
        `callback(size_bytes)` is called when memory is refused: True asks again, False (or
        an exception, which is written to standard error) lets the refusal stand.
        """

class LiveBlock:
    """A block that is out."""

    @property
    def address(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """As asked for."""

    @property
    def alignment(self) -> int: ...

    @property
    def number(self) -> int:
        """Counts from 1 in the order they came."""

    @property
    def origin(self) -> str:
        """
        Python frames that asked for it, a line each, the innermost first; or empty.
        """

class TrackingResource(Adaptor):
    """Knows which blocks are out, and who asked for them."""

    def __init__(self, upstream: MemoryResource, *, stacks: bool = False) -> None:
        """`stacks` keeps the innermost 16 Python frames of each block."""

    def live(self) -> list[LiveBlock]:
        """The blocks that are out, the oldest first."""

    @property
    def live_bytes(self) -> int: ...

class GuardedResource(Adaptor):
    """
    Finds writes beside blocks and after their end: canaries and a quarantine.
    """

    def __init__(self, upstream: MemoryResource, *, quarantine_bytes: int = 1048576) -> None:
        """
        A block lies between canaries of 32 bytes; one that is damaged cannot be given back.
        Of what came back, `quarantine_bytes` wait before they can be handed out again.
        """

    def faults(self) -> list[str]:
        """
        A sentence for each damaged block, live or given back. No thread may be writing.
        """

    @property
    def quarantined_bytes(self) -> int: ...

class GuardPageResource(Adaptor):
    """
    Stops a program at the first access beside a block: pages without access.
    """

    def __init__(self, upstream: MemoryResource, *, quarantine_bytes: int = 1048576) -> None:
        """
        A block ends where a page begins that nobody may touch, as near as its alignment
        admits; who does is stopped by a signal. So is who touches one of the
        `quarantine_bytes` that came back last. A block takes three pages at least.
        """

    @property
    def quarantined_bytes(self) -> int: ...

def process_mappings() -> tuple[int, int]:
    """
    How many ranges of addresses the process has mapped, and how many the system lets it
    have; 0 for what the system does not say.
    """

class PagedDevice:
    """Physical chunks and addresses of a device, to be joined."""

    @property
    def granularity_bytes(self) -> int:
        """Sizes of chunks are multiples of it."""

class HostDevice(PagedDevice):
    """Private pages, moved from address to address without a copy."""

    def __init__(self) -> None: ...

class SharedDevice(PagedDevice):
    """Pages of a file in memory that other processes can map."""

    def __init__(self) -> None: ...

    @property
    def descriptor(self) -> int:
        """Of the open file."""

class FailingDevice(PagedDevice):
    """Refuses some calls, to test what happens then."""

    def __init__(self, device: PagedDevice, first: int, count: int = 1) -> None:
        """
        Refuses `count` calls to create, reserve, map, unmap or grow, from number `first` on.
        """

    def __del__(self) -> None: ...

    @property
    def call_count(self) -> int:
        """Such calls so far."""

class PythonDevice(PagedDevice):
    """A device that is a pair of functions."""

    def __init__(self, create_physical_memory: Callable[[int], object], create_virtual_memory: Callable[[int, int], object], *, granularity_bytes: int = 4096, maps_twice: bool = False) -> None:
        """
        `create_physical_memory(size_bytes)` gives a chunk, any object;
        `create_virtual_memory(size_bytes, alignment)` an object with `address` and the
        methods `map(offset_bytes, chunks)`, `unmap(offset_bytes, chunks)` and
        `extend(more_bytes)`, true when done. None, false or an exception is a refusal; an
        object that is dropped gives back what it has.
        """

class Stream:
    """Work done in order, beside the thread that asks for it."""

class HostStream(Stream):
    """A thread that runs functions in the order they were given."""

    def __init__(self) -> None: ...

    def submit(self, work: Callable[[], object]) -> None:
        """
        Runs it after what was submitted before; what it raises goes to stderr.
        """

    def synchronize(self) -> None:
        """Returns when everything submitted so far is done."""

class PythonStream(Stream):
    """A stream that Python knows of."""

    def __init__(self, record: Callable[[], object]) -> None:
        """
        `record()` gives a fence behind all work so far, an object with `is_signalled()`, or
        None where all is done.
        """

    def __del__(self) -> None: ...

class VirtualStatistics:
    """What a virtual resource has; exact while no call is in flight."""

    @property
    def requested_bytes(self) -> int:
        """As asked for, in live blocks."""

    @property
    def allocated_bytes(self) -> int:
        """What live blocks take."""

    @property
    def peak_allocated_bytes(self) -> int:
        """The most of it."""

    @property
    def physical_bytes(self) -> int:
        """Of all chunks, live and cached."""

    @property
    def peak_physical_bytes(self) -> int:
        """The most of it."""

    @property
    def cached_bytes(self) -> int:
        """Of chunks that no live block has."""

    @property
    def address_bytes(self) -> int:
        """Of reserved addresses."""

    @property
    def waiting_count(self) -> int:
        """Addresses kept for work that is not done."""

    @property
    def allocation_count(self) -> int:
        """Of all time."""

    @property
    def exact_count(self) -> int:
        """Of these, met by memory that was mapped as it was."""

    @property
    def remap_count(self) -> int:
        """Of these, those for which chunks were mapped elsewhere."""

    @property
    def created_count(self) -> int:
        """Chunks made."""

    @property
    def moved_count(self) -> int:
        """Chunks mapped elsewhere."""

    @property
    def released_count(self) -> int:
        """Chunks given back to the device."""

    @property
    def retry_count(self) -> int:
        """Requests repeated after caches were given back."""

    @property
    def wait_count(self) -> int:
        """Requests that waited for a fence."""

class VirtualResource(MemoryResource):
    """Blocks at addresses that chunks are mapped to and moved between."""

    def allocate_on(self, size_bytes: int, stream: Stream | None, alignment: int = 16) -> int:
        """As `allocate`, for use in the order of a stream."""

    def deallocate_on(self, address: int, size_bytes: int, stream: Stream | None, alignment: int = 16) -> None:
        """
        As `deallocate`, while work that the stream was given may still use the block: it
        serves the same stream at once, others when that work is done.
        """

    def virtual_statistics(self) -> VirtualStatistics: ...

    def blocks(self) -> list[tuple[int, int, int, int, str]]:
        """
        Every block that has memory where it lies: where its segment begins, its address,
        size, bytes asked for (0 unless it is live) and `live`, `awaiting` (work may still
        use it), `kept` (for a request of its size) or `free`.
        """

    def record_events(self, count: int) -> None:
        """Keeps the last `count` events from now on; 0, as at first, keeps none."""

    def events(self) -> list[tuple[str, int, int, int]]:
        """
        The oldest first: `allocated`, `freed`, `mapped` or `unmapped`, address, bytes (of a
        block, as asked for), nanoseconds since 1970.
        """

class ChunkedVirtualResource(VirtualResource):
    """
    The virtual caching allocator as it was published: caches of chunks and of addresses.
    """

    def __init__(self, device: PagedDevice, chunk_bytes: int = 20971520) -> None: ...

    def __del__(self) -> None: ...

    @property
    def chunk_bytes(self) -> int: ...

    def set_chunk_size(self, chunk_bytes: int) -> None:
        """Of chunks made from now on; what is cached goes back."""

class StealingVirtualResource(VirtualResource):
    """
    Blocks of any size from one range of addresses; free pages move to where they are wanted.
    """

    def __init__(self, device: PagedDevice, *, page_bytes: int = 2097152, max_bytes: int | None = None, keep_bytes: int = 0, idle_seconds: float = 10.0, patience_seconds: float = 1.0) -> None:
        """
        Maps memory in pages, at most `max_bytes` of it. What was not needed for
        `idle_seconds` goes back, but for `keep_bytes`. Work that is in the way is waited for
        `patience_seconds` long before memory is made instead.
        """

    def __del__(self) -> None: ...

class PlannedResource(Adaptor):
    """Serves requests that repeat at offsets that were planned."""

    def __init__(self, upstream: MemoryResource) -> None: ...

    def restart(self) -> None:
        """Begins an iteration: the plan's first request is expected next."""

    def recorded(self) -> list[tuple[int, int, int, int | None]]:
        """
        Requests since `restart`: size, alignment, the step it came at, and the step it went
        back at or None. Steps count requests and what went back.
        """

    def set_plan(self, requests: Sequence[tuple[int, int, int | None]], capacity_bytes: int, alignment: int) -> None:
        """
        Expects requests of a size, an alignment and an offset each, None for one that
        upstream is to serve, within `capacity_bytes` of upstream's.

        Raises OutOfMemoryError where upstream has not so much; InputError where a block of
        the plan before is live, or a request lies outside.
        """

    @property
    def hit_count(self) -> int:
        """Requests that were as expected."""

    @property
    def surprise_count(self) -> int:
        """
        Requests that were not, or whose place was taken; upstream served them.
        """

    @property
    def planned_count(self) -> int:
        """Live blocks at planned offsets."""

    @property
    def capacity_bytes(self) -> int:
        """Of the plan; 0 for none."""

class CudaDevice(PagedDevice):
    """Chunks of a CUDA device's memory and addresses of its driver's."""

    def __init__(self, ordinal: int = 0, driver_library: str | None = None) -> None:
        """
        `driver_library` names the driver, else `TIGHTSHIP_CUDA_DRIVER_LIBRARY` does, else
        it is the system's. Raises LibraryError where there is no driver or no such device.
        """

    @property
    def total_bytes(self) -> int:
        """Of all the device's memory."""

class CudaStream(Stream):
    """A stream that somebody else made."""

    def __init__(self, device: CudaDevice, handle: int = 0) -> None:
        """`handle` is the CUstream, 0 the default one; it must outlive this."""

def configure_cuda_pools(*, page_bytes: int = 2097152, max_bytes: int | None = None, patience_seconds: float = 1.0, driver_library: str | None = None) -> None:
    """Refused while blocks are in use by other settings."""

def cuda_pool_statistics(device: int) -> VirtualStatistics: ...

def cuda_pool_live_count(device: int) -> int: ...

def cuda_pool_stream_count(device: int) -> int:
    """Handles of streams that are remembered."""

def trim_cuda_pool(device: int) -> int: ...

class NumpyBound:
    """
    Within `with`, arrays the thread makes count against a bound; one too large raises MemoryError.
    """

    def __init__(self, limit_bytes: int) -> None: ...

    def __enter__(self) -> NumpyBound: ...

    def __exit__(self, *args: object) -> None: ...

    @property
    def live_bytes(self) -> int: ...

    @property
    def peak_bytes(self) -> int: ...

    @property
    def refused_bytes(self) -> int:
        """Live bytes that the last refused request would have made."""

class NumpyScope:
    """Within `with`, arrays the thread makes are blocks of a resource."""

    def __init__(self, resource: MemoryResource) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

class Replayed:
    """What a resource did with a recorded sequence."""

    @property
    def peak_live_bytes(self) -> int:
        """As they were asked for."""

    @property
    def peak_held_bytes(self) -> int:
        """What the resource had touched at most; 0 where nobody looked."""

    @property
    def live_bytes(self) -> list[int]:
        """The most in each part of the sequence."""

    @property
    def held_bytes(self) -> list[int]:
        """The most in each part of the sequence."""

    @property
    def refused_count(self) -> int: ...

    @property
    def duration_ns(self) -> int:
        """Processor time of the thread."""

def replay(resource: MemoryResource, slots: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, part_count: int) -> Replayed:
    """
    Allocates `sizes[i]` bytes into slot `slots[i]`, or gives back what slot
    `~slots[i]` has. A slot must be free when something comes to it. What is held is
    looked at where `part_count` is not 0.
    """

class MallocResource(MemoryResource):
    """
    The C library's allocator, to compare with: it checks nothing that is given back.
    """

    def __init__(self) -> None: ...

class CachingSimulation(MemoryResource):
    """
    What PyTorch's caching allocator for devices would hold: a simulation to compare with.
    """

    def __init__(self) -> None: ...

class StopFlag:
    """Set from any thread to end a run between two steps."""

    def __init__(self) -> None: ...

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

class GuardedMapping:
    """
    A part of a file, read and written where it lies, that another may make shorter.
    """

    def __init__(self, file: int, offset_bytes: int, size_bytes: int) -> None:
        """
        Map bytes of a file that is open to read and write, from a multiple of the page size.

        Raises MemoryError where the system refuses, or too many are mapped.
        """

    @property
    def is_lost(self) -> bool:
        """
        Whether bytes were touched that the file no longer has, or for which the system had
        no page: all of it is zeros since then, and nobody else's.
        """

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """Its bytes, as a uint8 array that keeps it mapped."""

HAS_ONEDNN: bool = True

class OneDnnLibraryError(ImportError):
    pass

class OneDnnError(RuntimeError):
    pass

def onednn_open(path: str) -> None:
    """
    Opens the library once for the process; raises OneDnnLibraryError with the reason.
    """

def onednn_is_open() -> bool: ...

def onednn_version() -> str: ...

def onednn_openmp() -> str:
    """
    Whose threads it runs on: `tightship`, or the file of another OpenMP runtime.
    """

def onednn_path() -> str: ...

def onednn_cpu_isa() -> int: ...

def set_onednn_threads(count: int) -> None:
    """Threads of primitives that the calling thread describes from now on."""

def onednn_threads() -> int: ...

class Reorderer:
    """Copies operands into other layouts; keeps nothing when it goes."""

    def __init__(self) -> None: ...

    def run(self, src: MemoryDesc, from_address: int, dst: MemoryDesc, to_address: int) -> None:
        """The addresses must hold the operands."""

class MemoryDesc:
    """Shape, element type and layout of an operand."""

    def __init__(self, dims: Sequence[int], dtype: str = 'float32', strides: Sequence[int] | None = None) -> None: ...

    @staticmethod
    def any(dims: Sequence[int], dtype: str = 'float32') -> MemoryDesc:
        """A layout that the primitive chooses."""

    @staticmethod
    def named(dims: Sequence[int], dtype: str, format: str) -> MemoryDesc:
        """A layout as `format` writes it."""

    @property
    def dims(self) -> list[int]: ...

    @property
    def strides(self) -> list[int]: ...

    @property
    def dtype(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def end_bytes(self) -> int:
        """Bytes from the operand's address to behind its last element."""

    @property
    def is_plain(self) -> bool: ...

    @property
    def offset_bytes(self) -> int: ...

    @property
    def blocks(self) -> list[int]: ...

    @property
    def format(self) -> str: ...

    def reshaped(self, dims: Sequence[int]) -> MemoryDesc: ...

    def permuted(self, permutation: Sequence[int]) -> MemoryDesc: ...

    def part(self, dims: Sequence[int], offsets: Sequence[int]) -> MemoryDesc: ...

    @property
    def recipe(self) -> bytes:
        """How to make it again; empty where it cannot be said."""

    @staticmethod
    def of_recipe(recipe: bytes) -> MemoryDesc:
        """What a recipe says; raises RecipeError or OneDnnError."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Attributes:
    """Post-operations and scales of a primitive."""

    def __init__(self) -> None: ...

    def add_sum(self, scale: float = 1.0) -> None: ...

    def add_eltwise(self, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> None: ...

    def add_binary(self, algorithm: str, operand: MemoryDesc) -> None: ...

    def scale(self, argument: int, mask: int) -> None: ...

    def zero_point(self, argument: int, mask: int) -> None: ...

class PrimitiveDesc:
    """An implementation chosen for fixed shapes and layouts."""

    @staticmethod
    def convolution(src_weights_bias_dst: Sequence[MemoryDesc | None], window: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], transposed: bool, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def pooling(algorithm: str, src: MemoryDesc, dst: MemoryDesc, kernel: Sequence[int], window: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def eltwise(algorithm: str, src: MemoryDesc, dst: MemoryDesc, alpha_beta: tuple[float, float], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def binary(algorithm: str, left: MemoryDesc, right: MemoryDesc, dst: MemoryDesc, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def sum(sources: Sequence[MemoryDesc], dst: MemoryDesc, scales: Sequence[float], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def concat(sources: Sequence[MemoryDesc], dst: MemoryDesc, axis: int, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def softmax(src: MemoryDesc, dst: MemoryDesc, axis: int, logarithm: bool, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def local_response(src: MemoryDesc, dst: MemoryDesc, size: int, alpha_beta_k: tuple[float, float, float], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def batch_normalization(src: MemoryDesc, dst: MemoryDesc, epsilon: float, fuse_relu: bool, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def layer_normalization(src: MemoryDesc, dst: MemoryDesc, epsilon: float, with_shift: bool, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def convolution_data_gradient(src_weights_bias_dst: Sequence[MemoryDesc | None], window: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def convolution_weights_gradient(src_weights_bias_dst: Sequence[MemoryDesc | None], window: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def eltwise_gradient(algorithm: str, data: MemoryDesc, diff: MemoryDesc, alpha_beta: tuple[float, float], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def softmax_gradient(dst: MemoryDesc, diff: MemoryDesc, axis: int, logarithm: bool, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def layer_normalization_gradient(src: MemoryDesc, diff: MemoryDesc, epsilon: float, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def matmul(src_weights_bias_dst: Sequence[MemoryDesc | None], attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def reduction(algorithm: str, src: MemoryDesc, dst: MemoryDesc, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def resampling(linear: bool, src: MemoryDesc, dst: MemoryDesc, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def shuffle(src: MemoryDesc, dst: MemoryDesc, axis: int, group_size: int, attributes: Attributes) -> PrimitiveDesc: ...

    @staticmethod
    def reorder(src: MemoryDesc, dst: MemoryDesc, attributes: Attributes) -> PrimitiveDesc: ...

    @property
    def implementation(self) -> str: ...

    @property
    def signature(self) -> str: ...

    @property
    def scratchpad_bytes(self) -> int: ...

    def operand(self, argument: int) -> MemoryDesc:
        """
        Layout of the operand bound to an argument number; null where it has none.
        """

    def next_implementation(self) -> bool: ...

    def reach(self) -> list[tuple[int, int]]:
        """
        Arguments of a run, its scratchpad left out, and bytes that it may touch of each.
        """

    @property
    def skipped(self) -> int:
        """Implementations that were moved on from."""

    @property
    def recipe(self) -> bytes:
        """
        How to make it again, up to the implementation, where that was recorded; else empty.
        """

    @staticmethod
    def of_recipe(recipe: bytes) -> PrimitiveDesc:
        """What a recipe says; raises RecipeError, or as its factory does."""

class KernelError(RuntimeError):
    pass

class NativeKernel:
    """
    An operator of our own for fixed shapes, one constructor each; operands: inputs, outputs, scratch.
    """

    @staticmethod
    def of_recipe(recipe: bytes) -> NativeKernel:
        """What a recipe says; raises RecipeError, or as its factory does."""

    def reach(self) -> list[tuple[int, int]]:
        """
        Bytes of each operand that a run may touch, its scratch left out: from the first to behind the last, counted from the operand's address.
        """

    @property
    def written(self) -> int:
        """How many of its last operands a run writes; the others it only reads."""

    @property
    def recipe(self) -> bytes:
        """How to make it again where that was recorded, else empty."""

    def scratch_bytes(self, threads: int) -> int:
        """Room that it needs for itself, its last operand."""

    @staticmethod
    def elementwise(name: str, types: Sequence[str], shape: Sequence[int], strides: Sequence[Sequence[int]], parameters: Sequence[float]) -> NativeKernel | None:
        """
        Inputs, output: an operator on each element; types and strides (bytes) of inputs, then of the output. None where there is no such kernel.
        """

    @staticmethod
    def streamed_bytes(name: str, type: str) -> int | None:
        """
        Dense results of an `elementwise` of operands of one shape from which on it writes around the caches; None where it never does on this processor.
        """

    @staticmethod
    def reduction(name: str, dtype: str, kept: tuple[Sequence[int], Sequence[int], Sequence[int]], reduced: tuple[Sequence[int], Sequence[int]]) -> NativeKernel | None:
        """
        Source, target: shape and strides (bytes) in both of the axes that stay, shape and strides of the axes that go. None where there is no such kernel.
        """

    @staticmethod
    def normalization(dtype: str, rows: tuple[int, int, int, int], by_segment: bool, present: Sequence[bool], is_centered: bool, epsilon: float) -> NativeKernel | None:
        """
        Source, scale, bias, target, means, inverse deviations, where present. Rows: how many, parts of each, length of a part, parameters.
        """

    @staticmethod
    def softmax(dtype: str, rows: tuple[int, int, int], is_logarithm: bool) -> NativeKernel | None:
        """Source, target, seen as (before, along, after) the axis."""

    @staticmethod
    def position(dtype: str, rows: tuple[int, int, int], is_largest: bool, takes_last: bool) -> NativeKernel | None:
        """Source, target of int64, seen as (before, along, after) the axis."""

    @staticmethod
    def hardmax(dtype: str, rows: tuple[int, int, int]) -> NativeKernel | None:
        """Source, target, seen as (before, along, after) the axis."""

    @staticmethod
    def best(dtype: str, rows: tuple[int, int, int], count: int, is_largest: bool) -> NativeKernel | None:
        """Source, values, indices, scratch: the best elements in order."""

    @staticmethod
    def running_sum(dtype: str, rows: tuple[int, int, int], is_exclusive: bool, is_reverse: bool) -> NativeKernel | None:
        """Source, target, seen as (before, along, after) the axis."""

    @staticmethod
    def copy(item_bytes: int, shape: Sequence[int], source_strides: Sequence[int], target_strides: Sequence[int]) -> NativeKernel:
        """
        Source, target: elements into another layout of the same shape; strides in bytes.
        """

    @staticmethod
    def moves(item_bytes: int, moves: Sequence[tuple[Sequence[int], tuple[int, int, Sequence[int]], tuple[int, int, Sequence[int]]]]) -> NativeKernel:
        """
        Each move a shape, a source and a target; these two an operand's number, the byte of the first element, strides in bytes.
        """

    @staticmethod
    def gather(item_bytes: int, indexing: tuple[str, int, Sequence[int], Sequence[int], Sequence[tuple[int, int, int]]], walk: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], blocks: tuple[int, int] = (0, 0)) -> NativeKernel:
        """
        Data, indices, result. `indexing`: node, bytes of an index, shape and strides of the tuples, and for each of their indices (length, index step, data step). `walk`: shape; strides of data, tuples, result. `blocks`: elements after which a data step starts again, 0 for none, and bytes between these.
        """

    @staticmethod
    def scatter(type: tuple[int, str, str], indexing: tuple[str, int, Sequence[int], Sequence[int], Sequence[tuple[int, int, int]]], walk: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], whole: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> NativeKernel | None:
        """
        Data, indices, updates, result. `type`: item bytes, dtype, reduction. `walk`: shape; strides of result, tuples, updates. `whole`: the data's shape and strides, and the result's strides. None where the reduction cannot be.
        """

    @staticmethod
    def lookup(item_bytes: int, items: int, has_fill: bool, tables: Sequence[Sequence[int]]) -> NativeKernel:
        """
        Source[, fill], target: each element the sum of its positions' entries, byte offsets into the source; a negative one fills. An entry stands for `items`.
        """

    @staticmethod
    def taps(axes: Sequence[tuple[Sequence[int], Sequence[Sequence[int]], Sequence[Sequence[float]]]]) -> NativeKernel:
        """
        Source, target of float32, one axis after another: elements before, along and after it, then indices and weights by tap and position; no weights take the largest. Books scratch.
        """

    @staticmethod
    def sample(how: Sequence[str], aligns_corners: bool, sizes: Sequence[int], lengths: Sequence[int], source_steps: Sequence[int], target_steps: Sequence[int]) -> NativeKernel:
        """
        Source, grid, target of float32. `how`: nearest, linear or cubic; zeros, border or reflection. `sizes`: images, channels, positions. Steps in elements: of images, channels and spatial axes, or positions.
        """

    @staticmethod
    def fills(fills: Sequence[tuple[bytes, int, Sequence[int], Sequence[int]]]) -> NativeKernel:
        """
        Target: each fill an element as bytes, a byte offset, shape and strides.
        """

    @staticmethod
    def triangle(item_bytes: int, upper: bool, has_diagonal: bool, shape: Sequence[int], source_strides: Sequence[int]) -> NativeKernel:
        """
        Source[, diagonal], target: a triangle of each matrix, zeros elsewhere.
        """

    @staticmethod
    def one_hot(item_bytes: int, dtype: str, shape: tuple[int, int, int]) -> NativeKernel | None:
        """Indices of `dtype`, off and on, target of (outer, depth, inner)."""

    @staticmethod
    def ramp(dtype: str, count: int) -> NativeKernel | None:
        """Start, step, target: numbers that grow by the step."""

    @staticmethod
    def reverse_sequences(node: str, sizes: Sequence[int], steps_first: bool) -> NativeKernel:
        """Data, lengths, target. `sizes`: sequences, steps, bytes of a step."""

    @staticmethod
    def append(node: str, sizes: Sequence[int], has_firsts: bool, is_circular: bool) -> NativeKernel:
        """
        Past, update[, first steps], target. `sizes`: batches, groups, steps, new steps, bytes of a step.
        """

    class AttentionRule:
        """How scores become weights; `mask` is none, added, kept or hidden."""

        def __init__(self, scale: float, mask: str = 'none', fill: float = 0.0, ahead: int = -1, zero_if_undefined: bool = False, zero_if_unseen: bool = False) -> None: ...

    @staticmethod
    def attention(outer: Sequence[int], sizes: Sequence[int], rule: NativeKernel.AttentionRule, strides: Sequence[Sequence[int]]) -> NativeKernel:
        """
        Queries, keys, values, mask where there is one, target, scratch; sizes are of queries, keys, depth, width; strides in bytes.
        """

    class ConvolutionShape:
        """A convolution over two spatial axes, channels last."""

        def __init__(self, batch_channels_outputs: Sequence[int], source: Sequence[int], target: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int], depth: int, by_block: bool) -> None: ...

        def scratch_bytes(self, threads: int) -> int: ...

    @staticmethod
    def streamed_convolution(shape: NativeKernel.ConvolutionShape, has_bias: bool, has_addend: bool, low: float, high: float) -> NativeKernel:
        """
        Source, weights, [bias,] [addend,] target: a convolution whose weights, packed by block or by chunk, are streamed; needs AVX-512.
        """

    @staticmethod
    def scale(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> NativeKernel:
        """
        Source, scales, target: their product; strides in bytes, 0 where a scale is repeated. Along the innermost axis elements lie together.
        """

    @staticmethod
    def depthwise(batch_channels: Sequence[int], sizes: Sequence[Sequence[int]], strides: tuple[Sequence[int], Sequence[int]], swishes: tuple[bool, bool], limits: tuple[float, float], has_means: bool) -> NativeKernel:
        """
        Source, weights, bias, target, [means,] scratch: each channel convolved by itself. Sizes are the source's, the target's, the kernel's, strides, dilations, pads; strides of source and target in elements, by image, row, pixel, 16 channels; whether there is a Swish before and behind; limits that results without one are clamped to.
        """

    @staticmethod
    def split_product(rows_depth_columns: Sequence[int], has_bias: bool, has_addend: bool, activation: str, low: float, high: float) -> NativeKernel:
        """
        Source, weights in panels of 64 columns, [bias,] [addend,] target, scratch: a product of float32 matrices from products of bfloat16, of which three make a float32. The activation is clip (to low and high), gelu_erf, gelu_tanh or swish.
        """

    @staticmethod
    def rotary(node: str, shape: Sequence[int], sizes: Sequence[int], strides: Sequence[Sequence[int]], along: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> NativeKernel:
        """
        Source, cosines, sines[, positions], target, of float32: pairs turned by an angle. `sizes`: pairs of a row, elements after them, rows of the tables or 0; `strides` around rows; `along` a row: from element to element, pair to pair, within a pair. In bytes.
        """

    class RecurrentRule:
        """
        What a recurrent layer computes; `cell` is plain, gru, linear_gru or lstm.
        """

        def __init__(self, cell: str, activations: Sequence[tuple[str, float, float]], is_reversed: bool, is_coupled: bool, limit: float) -> None:
            """Activations by name, alpha and beta, of one direction after another."""

    @staticmethod
    def recurrent(sizes: Sequence[int], rule: NativeKernel.RecurrentRule, parts: Sequence[str], strides: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> NativeKernel:
        """
        Products of the inputs, packed weights of the state, the parts named, scratch; sizes are steps, batch, directions, hidden; strides of the products, the sequence and the states, in elements.
        """

    @staticmethod
    def recurrent_gradient(cell: str, sizes: Sequence[int], is_reversed: bool, is_cut: bool, parts: Sequence[str]) -> NativeKernel:
        """The parts named, scratch; sizes are steps, batch, hidden."""

    @staticmethod
    def recurrent_weights(cell: str, directions: int, hidden: int) -> NativeKernel:
        """Weights of the state, the same packed."""

    @staticmethod
    def quantize(dtype: str, shape: Sequence[int], strides: Sequence[Sequence[int]], has_zero: bool) -> NativeKernel:
        """x, scale[, zero point], y of `dtype`; strides in bytes of the four."""

    @staticmethod
    def dequantize(dtype: str, shape: Sequence[int], strides: Sequence[Sequence[int]], has_zero: bool) -> NativeKernel:
        """x of `dtype`, scale[, zero point], y; strides in bytes of the four."""

    @staticmethod
    def dynamic_quantize(count: int) -> NativeKernel:
        """x, y (uint8), scale, zero point, scratch; of x's own range."""

    @staticmethod
    def update(rule: str, elements: Sequence[int], has: Sequence[bool], numbers: Sequence[float]) -> NativeKernel | None:
        """
        Weight, gradient, what is kept of it, step, rate, scale, then what is written. Elements: the first that changes, how many do, how many there are. Has: a rate, a scale. Numbers: rate, two of the rule's, epsilon, decay.
        """

    @staticmethod
    def squares_added(count: int, has_total: bool) -> NativeKernel:
        """Numbers, a total, the total with their squares."""

    @staticmethod
    def clip_scale(limit: float, name: str) -> NativeKernel:
        """A total of squares, the factor that its root is clipped by, the root."""

    @staticmethod
    def dropout(count: int, numbers: Sequence[float], stream: int, has_mask: bool) -> NativeKernel:
        """Numbers, seed and step, result, a mask. Numbers: ratio, scale."""

    @staticmethod
    def batch_normalization(image: Sequence[int], epsilon: float) -> NativeKernel:
        """
        Image as (outer, channels, inner), scale, bias, result, mean, variance.
        """

    @staticmethod
    def batch_normalization_gradient(image: Sequence[int], epsilon: float, is_given: bool) -> NativeKernel:
        """
        The result's gradient, image, scale, mean, variance, gradients of image, scale and bias.
        """

    @staticmethod
    def largest_gradient(images: Sequence[int], window: Sequence[Sequence[int]], is_last: bool) -> NativeKernel:
        """
        The result's gradient, image, its gradient. Images: how many, channels. Window: source, target, kernel, strides, dilations, padding in front.
        """

    @staticmethod
    def cross_entropy_gradient(scores: Sequence[int], has: Sequence[bool], ignored: int, name: str) -> NativeKernel:
        """
        The loss' gradient, logarithms of probabilities, labels, weights of classes, the scores' gradient. Has: a mean, an ignored label, weights.
        """

    @staticmethod
    def gather_gradient(shape: Sequence[int], part: Sequence[int], count: int, is_wide: bool, name: str) -> NativeKernel:
        """
        Gradient, indices of 32 or 64 bits, result (before, along, after), or of `part` along that axis: the first, and how many.
        """

class RecipeError(ValueError):
    pass

def record_recipes(wanted: bool) -> bool:
    """
    Whether the thread keeps the recipes of what it makes from now on; returns what was.
    """

def kernel_cpu() -> str:
    """
    Which instructions of this processor native kernels are made for, as `avx512`.
    """

def multiplies_tiles() -> bool:
    """
    Whether this processor multiplies tiles of bfloat16 (AMX), and the system lets us.
    """

class NativeProgram:
    """Kernels and primitives over planned bytes."""

    def __init__(self) -> None: ...

    def add_primitive(self, desc: PrimitiveDesc, arguments: Sequence[tuple[int, MemoryDesc, tuple[int, int]]]) -> None:
        """Arguments are numbers with the layout and place of each."""

    def add_kernel(self, kernel: NativeKernel, operands: Sequence[tuple[int, int]]) -> None: ...

    def compile(self, threads: int) -> None: ...

    def defer(self, threads: int) -> None:
        """Instead of `compile`: each run obtains its primitives."""

    def bind_weights(self, address: int) -> None: ...

    @property
    def step_count(self) -> int: ...

class NativeStepGraph:
    """Which of some native steps wait for which; for one run at a time."""

    def __init__(self, first: int, last: int, edges: Sequence[tuple[int, int]]) -> None: ...

class NativeContext:
    """A program bound to one arena."""

    def __init__(self, program: NativeProgram, arena_address: int) -> None: ...

    def bind_external(self, slot: int, array: object) -> None:
        """
        Read or write a C-contiguous array, which the caller keeps until the run is over.
        """

    def run(self, steps: tuple[int, int], stop: StopFlag, deadline_ns: int | None = None, ends_ns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> str:
        """
        Runs steps [first, last) without the GIL; "done", "stopped" or "deadline".
        """

    def run_at_once(self, steps: NativeStepGraph, workers: int, stop: StopFlag, deadline_ns: int | None = None) -> str:
        """Runs steps as soon as they can; otherwise as `run`."""

class Place:
    """
    Caller that may wait for one run permit at a time, by its groups, the widest first, such as a model and an account.
    """

    def __init__(self, names: Sequence[str], metrics: RequestMetrics, priority: int = 0) -> None:
        """Create a caller, which `metrics` counts while it waits."""

class RunPermits:
    """
    Limited run permits. Waiting callers alternate by group: one that has run goes behind the others of its level.
    """

    def __init__(self, count: int) -> None: ...

    @property
    def count(self) -> int:
        """Number of permits."""

    @property
    def is_free(self) -> bool:
        """Whether a permit is free."""

    @property
    def taken_count(self) -> int:
        """Number of permits that are taken."""

    @property
    def waiting_count(self) -> int:
        """Number of waiting callers."""

    def take_free(self) -> bool:
        """Take a permit if one is free; return whether it did."""

    def take(self, place: Place, timeout_s: float | None = None) -> bool:
        """
        Take a permit, waiting without the GIL; False if none came in time, or the caller left before.
        """

    def leave(self, place: Place) -> bool:
        """Remove a caller for good; return whether it was waiting."""

    def give_back(self, place: Place | None = None) -> None:
        """Give back the permit of a caller; None for one from `take_free`."""

class QueuedRuns:
    """Runs that wait for a run permit without occupying a thread, by number."""

    def __init__(self, permits: RunPermits, bell: int) -> None:
        """Add 1 to the eventfd `bell` for each permit that a waiting run gets."""

    def join(self, run: int, names: Sequence[str], priority: int, metrics: RequestMetrics) -> bool:
        """
        Take a permit for a run, or queue it as a `Place`; return whether it was taken. The caller keeps the tally.
        """

    def next(self) -> int | None:
        """
        Return the next waiting run that has got a permit; None if there is none.
        """

    def leave(self, run: int) -> None:
        """Remove a run; a permit that `next` has not reported yet is given back."""

    def give_back(self, run: int) -> None:
        """Give back the permit of a run that has ended."""

class CallCache:
    """
    CachedCall calls, answered without Python. Any number of threads may wait.
    """

    def __init__(self, calls: int, permits: RunPermits) -> None:
        """
        Watch sockets at the epoll descriptor `calls` for one event at a time. A run takes one of `permits`; if none is free, the slow path is used.
        """

    def open(self, file: int) -> None:
        """Watch a connection. Raises RuntimeError if the system refuses."""

    def next(self) -> tuple[int, int, bytes]:
        """
        Wait without the GIL for an event that is not handled here: its file, its events, and a reply that its socket did not accept. No other thread gets that file until `watch`.
        """

    def watch(self, file: int, events: int) -> None:
        """Watch a connection again that `next` has returned."""

    def watch_for(self, file: int, events: int) -> None:
        """
        Watch a connection for these events, from any thread: at once, or once the thread that answers it is done.
        """

    def close(self, file: int) -> None:
        """Stop watching a connection, and close its ring."""

    def remember(self, file: int, session: int, call_and_answer: tuple[bytes, bytes], context: NativeContext, steps: tuple[int, int], stop: StopFlag, metrics: RequestMetrics, names: Sequence[str]) -> None:
        """
        Answer a call by a run of steps [first, last), counted by `metrics`, with the run permit of a `Place` with these names. The caller keeps all arguments, and the memory that is read and written, until the call is forgotten.
        """

    def remember_call(self, file: int, session: int, call_and_answer: tuple[bytes, bytes], run: Callable[[], None], metrics: RequestMetrics, names: Sequence[str]) -> None:
        """Answer a call by calling `run`; if it raises, the slow path is used."""

    def forget(self, file: int, session: int) -> None:
        """
        Stop answering the calls of a session, or all if it is 0; returns once none runs.
        """

    def pause(self, file: int) -> None:
        """
        Answer no call of a connection until `resume`. No thread may be reading its socket.
        """

    def resume(self, file: int) -> None:
        """Answer calls of a connection again; harmless if they were not paused."""

    def open_ring(self, file: int, memory: int) -> None:
        """
        Accept calls of a connection through a ring as well, a memfd of `RingCaller.SIZE_BYTES`. Raises RuntimeError if it cannot be mapped.
        """

    def set_polling(self, threads: int) -> None:
        """Set how many threads may poll rings at once; none at first."""

class RingCaller:
    """Client's side of a ring, for one thread at a time."""

    def __init__(self, memory: int) -> None:
        """
        Map a memfd, which may then be closed. Raises RuntimeError if that fails.
        """

    def call(self, message: bytes) -> bytes | None:
        """
        Return the reply; `b""` if it will come by the socket, None if the call must be made there. Polls for a while, without the GIL.
        """

    def dismiss(self) -> None:
        """Make the driver read the socket at once."""

    SIZE_BYTES: Final[int] = ...
    """Size of its memory."""

    ELSEWHERE: Final[bytes] = ...
    """Reply to a call that must be made by the socket instead."""

class RequestMetrics:
    """Request metrics of one model; durations in nanoseconds."""

    def __init__(self) -> None: ...

    def succeed(self, phase_ns: Sequence[int]) -> None:
        """
        Count a successful request, by the durations of waiting, reading inputs, running and writing outputs.
        """

    def fail(self, duration_ns: int) -> None:
        """Count a failed request."""

    def now(self) -> tuple[int, int, int, int, tuple[int, int, int, int], int]:
        """
        Return successes, failures, waiting requests, duration of failures, durations of the four phases of successes, and the end of the last success in ms since 1970.
        """

class LentConnections:
    """
    Fast-path HTTP connections, whose known requests are answered without Python. Any number of threads may wait.
    """

    def __init__(self, permits: RunPermits) -> None:
        """Take one of `permits` for each run."""

    def remember(self, number: int, exchange: tuple[bytes, bytes], run: tuple[NativeContext, tuple[int, int], StopFlag], mapped: Sequence[tuple[GuardedMapping, int, int]], released: Callable[[], None], model: tuple[RequestMetrics, str]) -> None:
        """
        Answer a request by a response after a run of steps [first, last) of a context, if all of `mapped` is still there: mappings, files, and ends in them. The tally of `model` counts runs, and its name is the group by which they alternate. The caller keeps all arguments until `released` is called, once the number is forgotten and nothing runs.
        """

    def remember_call(self, number: int, exchange: tuple[bytes, bytes], run: Callable[[], None], mapped: Sequence[tuple[GuardedMapping, int, int]], released: Callable[[], None], model: tuple[RequestMetrics, str]) -> None:
        """
        Answer a request after a call of `run`; if it raises, the slow path is used.
        """

    def forget(self, number: int) -> None:
        """Stop answering a request."""

    def lend(self, connection: int, file: int, account: str, client: str) -> None:
        """
        Answer known requests on a socket. The connection's number must be new and positive; the caller may close the socket. Accounts of a model and their clients alternate. Raises RuntimeError if no descriptor is left.
        """

    def recall(self, connection: int) -> bool:
        """Take a connection back; False if `next` returns it instead."""

    def idle_since(self, connection: int) -> int | None:
        """
        Return the time of the loan or the last response, by `time.monotonic_ns`; None during a request, or if `next` is about to return the connection.
        """

    def next(self) -> tuple[int, bool, bytes] | None:
        """
        Wait without the GIL for a connection to return: its number, whether the last request was answered, and what the socket did not accept of that. None once this is closed.
        """

    def close(self) -> None:
        """Make every `next` return None."""

class PrimitiveCacheStatistics:
    """hits + waits + misses are the primitives that were asked for."""

    @property
    def hits(self) -> int: ...

    @property
    def waits(self) -> int:
        """Found while another thread compiled it."""

    @property
    def misses(self) -> int:
        """Had to be compiled."""

    @property
    def failures(self) -> int:
        """Of those, could not be."""

    @property
    def evictions(self) -> int: ...

    @property
    def entries(self) -> int:
        """Primitives held now."""

    @property
    def bytes(self) -> int:
        """Of them, estimated."""

    @property
    def idle_entries(self) -> int:
        """Of them, used by nobody."""

    @property
    def idle_bytes(self) -> int:
        """Of those, estimated."""

class LifetimeManager:
    """Who is alive with whom among the temporaries of a primitive."""

    def start_lifetime(self) -> int:
        """The number of an object that is alive from now on."""

    def end_lifetime(self, object: int, size_bytes: int, alignment: int = 64) -> None:
        """The object is needed no more; raises InputError unless it is alive."""

    @property
    def are_all_finalized(self) -> bool: ...

    @property
    def size_bytes(self) -> int:
        """Of a pool for them; raises InputError while an object is alive."""

class BlobLifetimeManager(LifetimeManager):
    """A region for each of as few objects as live at once."""

    def __init__(self) -> None: ...

class OffsetLifetimeManager(LifetimeManager):
    """One region, objects at planned offsets."""

    def __init__(self) -> None: ...

class PoolStatistics:
    """Pools that are free and reserved."""

    @property
    def free_count(self) -> int: ...

    @property
    def free_bytes(self) -> int: ...

    @property
    def reserved_count(self) -> int: ...

    @property
    def reserved_bytes(self) -> int: ...

    @property
    def peak_bytes(self) -> int:
        """The most of both together."""

    @property
    def created(self) -> int: ...

    @property
    def reused(self) -> int: ...

    @property
    def trimmed(self) -> int:
        """Free ones that were given back."""

class PoolManager:
    """Pools of temporaries, free and reserved."""

    def __init__(self, budget_bytes: int) -> None:
        """Free pools hold at most `budget_bytes`; 0 frees them at once."""

    def __del__(self) -> None: ...

    @property
    def budget_bytes(self) -> int: ...

    @budget_bytes.setter
    def budget_bytes(self, arg: int, /) -> None: ...

    def trim(self, budget_bytes: int = 0) -> int:
        """
        Gives free pools back until they hold at most so many bytes; returns what it gave.
        """

    def statistics(self) -> PoolStatistics: ...

class PrimitiveResource:
    """The memory of one run of a primitive."""

    @property
    def is_held(self) -> bool: ...

    @property
    def identity(self) -> int: ...

    def address(self, object: int = 0) -> int:
        """Raises InputError where there is no such object."""

class MemoryManager:
    """Where the temporaries of a primitive come from, run by run."""

    def __init__(self, lifetimes: LifetimeManager, pools: PoolManager, *, is_cached: bool = True) -> None:
        """
        On demand, unless `is_cached`: what a run had is given back when it is over.
        """

    def __del__(self) -> None: ...

    def populate(self, resource: MemoryResource, count: int) -> None:
        """
        Makes free pools for so many runs, at most what the budget admits; all or none.
        """

    def clear(self) -> None:
        """Gives every pool back; raises InputError while one is reserved."""

    def reserve_pools(self, resource: MemoryResource, count: int) -> None:
        """
        Has so many more pools reserved for this primitive; all, or OutOfMemoryError and none.
        """

    def unreserve_pools(self, count: int) -> None:
        """Returns so many; raises InputError, and returns none, where fewer are."""

    @property
    def reserved_count(self) -> int:
        """Pools that are reserved and not in use."""

    def create_resource(self, resource: MemoryResource) -> PrimitiveResource:
        """A pool for one run."""

    def destroy_resource(self, held: PrimitiveResource) -> None:
        """
        Ends a run; raises InputError where the resource is not this manager's.
        """

class CachedPrimitive:
    """A compiled primitive, in use while this lives."""

    @property
    def size_bytes(self) -> int:
        """Of its code and description, estimated."""

    @property
    def scratch_bytes(self) -> int: ...

    @property
    def memory(self) -> MemoryManager:
        """Where its scratch, object 0, comes from."""

    def is_same(self, other: CachedPrimitive) -> bool:
        """Whether both are one compiled primitive."""

class PrimitiveCache:
    """Compiled primitives by what they compute."""

    def __init__(self, entries: int, idle_bytes: int, pools: PoolManager, *, is_cached: bool = True) -> None:
        """`pools` and `is_cached` are those of the primitives' memory managers."""

    def obtain(self, desc: PrimitiveDesc, threads: int = 1) -> CachedPrimitive:
        """
        The primitive of a description made for so many threads, compiled if need be.
        """

    @property
    def entries(self) -> int:
        """Most primitives that it holds; 0 holds none."""

    @property
    def idle_bytes(self) -> int:
        """Most bytes of primitives that nobody uses."""

    def set_capacity(self, entries: int, idle_bytes: int) -> None:
        """Lets go at once of what is beyond."""

    def release_idle(self) -> int:
        """Lets go of what nobody uses; returns its bytes, estimated."""

    @property
    def pools(self) -> PoolManager: ...

    def statistics(self) -> PrimitiveCacheStatistics: ...

def primitive_cache() -> PrimitiveCache:
    """The cache that every program of the process shares."""

class NativeStepwise:
    """A deferred program whose primitives and memory are had for each call."""

    def __init__(self, program: NativeProgram, cache: PrimitiveCache, resource: MemoryResource, groups: Sequence[tuple[int, int, LifetimeManager, Sequence[int]]], scratch_slot: int) -> None:
        """
        Groups are first and last step, lifetimes, and a slot for each object of those.
        """

    def bind_external(self, slot: int, array: object) -> None:
        """An array that the caller keeps until the run is over."""

    def bind_persistent(self, slot: int, array: object) -> None:
        """An array of what primitives own; it is kept."""

    def run(self, stop: StopFlag, deadline_ns: int | None = None) -> str:
        """Runs every step without the GIL; "done", "stopped" or "deadline"."""

    @property
    def memory_ns(self) -> int:
        """Of the last run: obtaining memory and giving it back."""

    @property
    def primitives_ns(self) -> int:
        """Of the last run: finding primitives, or compiling them."""

def expect_leaks() -> None:
    """Keep the end of the process from listing objects that are still alive."""
