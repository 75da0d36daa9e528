"""The native core: placement, host memory, kernels, oneDNN, programs."""

from collections.abc import Callable, Sequence
import os
from typing import Annotated, Any, Final, SupportsIndex, overload

import numpy
from numpy.typing import NDArray


def lower_bound(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> int:
    """Return a lower bound of bytes for any placement of the buffers."""

def place_first_fit(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Place each buffer, in order, as low as it fits."""

def place_stacked(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Place each buffer on top of those before it."""

def place_best_gap(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Place each buffer in its tightest gap."""

def place_best_fit(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Place buffers as a best-fit allocator does, step after step."""

def place_shared_objects(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], match_range: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Place buffers in whole blocks, which are reused and stacked."""

def place_lowest_first(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Place next the buffer that fits lowest."""

def place_promote(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: int, rounds: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    Place in rounds, each with the buffers that ended above the target moved forward.
    """

class Fit:
    """Result of the exact search."""

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
    """Search offsets of buffers within a capacity."""

class TableRefusal:
    """Reason and position of a fault in a table."""

    @property
    def fault(self) -> int: ...

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...

    @property
    def text(self) -> bytes: ...

class TableHeader:
    """First line of a table."""

    @property
    def fields(self) -> list[bytes]: ...

    @property
    def refusal(self) -> TableRefusal: ...

class Table:
    """Rows of a table, by column."""

    def take_columns(self) -> list[Any]:
        """
        Return integers, or text and the stops of its words, for each column; once only.
        """

    def lines(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """Return the line of each row, from 1."""

    @property
    def refusal(self) -> TableRefusal: ...

def read_table_header(content: bytes) -> TableHeader:
    """Read the fields of the first line that is not empty."""

def read_table_rows(content: bytes, header: TableHeader, kinds: Sequence[int]) -> Table:
    """
    Read the rows after the header. `kinds`: 0 integer, 1 integer or empty, 2 words, 3 ignored.
    """

def first_repeated_word(text: bytes, stop: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
    """
    Return the index of the first word that repeats an earlier one; their number if all differ.
    """

def write_table_rows(columns: Sequence[tuple[bytes | None, Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]]) -> bytes:
    """Write columns as CSV: (text, stops of its words), or (None, integers)."""

def read_plan_rows(content: bytes) -> tuple[list[NDArray[numpy.int64]], tuple[bytes, NDArray[numpy.int64]] | None, int, int] | None:
    """
    Read the array `buffers` of a plan file: its columns, names, begin and end; None if it is not plain.
    """

def write_plan_rows(columns: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], text: bytes | None, stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
    """Write the elements of that array from columns and names."""

def first_overlap(rectangles: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> tuple[int, int] | None:
    """
    Find two rectangles that share a byte in a step. Rows: sizes, starts, stops, offsets.
    """

class ItemFit:
    """Result of the exact search for items."""

    @property
    def found(self) -> Fit: ...

    @property
    def banks(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

def search_items(rectangles: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int64], dict(shape=(6, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], bank_columns: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], within: tuple[int, int, int], threads: int, stop: StopFlag | None) -> ItemFit:
    """
    Search banks and bases for items, within limits on cost, peak and effort.
    """

def place_items(rectangles: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int64], dict(shape=(6, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.int64], dict(shape=(None, 5), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], by_cost: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]:
    """
    Return base and bank of each item: the first bank by cost, and the lowest base, that it fits.
    """

def live_max(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Return the largest load of any step of each lifetime."""

def sorted_rows(keys: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    Return row indices in ascending order of keys; the first key counts most, ties go by index.
    """

class StepOrder:
    """Order of steps."""

    def __init__(self, steps: int, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)]) -> None: ...

    def before(self, arg0: int, arg1: int, /) -> bool: ...

    @property
    def chains(self) -> int: ...

class BufferOrder:
    """Order of buffers: which of them end before others begin."""

    def __init__(self, steps: StepOrder, step: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stop: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def implied(self, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], alignment: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[tuple[int, int]]: ...

class BufferConflicts:
    """Pairs of buffers that must not share bytes."""

    def __init__(self, order: BufferOrder, group: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def meet(self, arg0: int, arg1: int, /) -> bool: ...

    def place(self, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], alignment: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tightest: bool) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """
        Return offsets that put each buffer, in the given order, into a gap between those before it.
        """

def needed_edges(steps: int, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], added: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """Return the added edges that do not follow from others."""

class StepTraffic:
    """Bytes that steps read, write and need as scratch."""

    def __init__(self, cells: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], touched: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], scratch: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], over: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> None: ...

    def peak(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """Return the largest load of any step if steps run in this order."""

    def least_order(self, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], effort: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], int, bool]:
        """
        Return the order with the lowest peak found, that peak, and whether it is optimal.
        """

def min_cut(nodes: int, edges: Annotated[NDArray[numpy.int64], dict(shape=(2, None), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], source: int, sink: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    Return 1 for each node on the source's side of the minimum cut, else 0.
    """

class CheckpointTable:
    """Cheapest ways to run a chain of atoms forward and back."""

    def __init__(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(7, None), order='C', device='cpu', writable=False)], matrices: Annotated[NDArray[numpy.int64], dict(shape=(2, None, None), order='C', device='cpu', writable=False)], slots: int) -> None: ...

    def operations(self, slots: int) -> int:
        """
        Return the operations within a number of slots; -1 if these are not enough.
        """

    def passes(self, slots: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """
        Return pairs in order: sweep 0, whole 1, last 2 or back 3; and the atom.
        """

def reduce_reuse(columns: Annotated[NDArray[numpy.int64], dict(shape=(4, None), order='C', device='cpu', writable=False)], penalties: Annotated[NDArray[numpy.int64], dict(shape=(None, 3), order='C', device='cpu', writable=False)], capacity: int, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], moves: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    Return offsets within a capacity that lower the penalties of pairs that share bytes.
    """

def release_code(path: str) -> None:
    """
    Drop the resident pages of a loaded library's code; they are read again as they run.
    """

def release_heap() -> None:
    """Give whole free pages of the heap back to the system."""

def use_one_heap() -> None:
    """
    Make every thread allocate from one heap, whose free pages can all be given back; threads that have allocated already keep theirs.
    """

class ResourceStatistics:
    """Counters of a memory resource; exact while no other call is in flight."""

    @property
    def current_bytes(self) -> int:
        """Bytes of live blocks, as rounded by the resource."""

    @property
    def current_count(self) -> int:
        """Number of live blocks."""

    @property
    def reserved_bytes(self) -> int:
        """Bytes held to make blocks from, live blocks included."""

    @property
    def touched_bytes(self) -> int:
        """Held bytes that have ever been in blocks or between them."""

    def __repr__(self) -> str: ...

class MemoryResource:
    """
    Allocates and frees blocks of memory, from any thread. Cannot be copied or pickled.
    """

    def allocate(self, size_bytes: int | str, alignment: int = 16) -> int:
        """
        Return the address of `size_bytes` bytes or more, a multiple of `alignment`; 0 bytes have
        an address of their own.

        Raises OutOfMemoryError with the numbers, InputError for a size or an alignment that
        no resource serves.
        """

    def deallocate(self, address: int, size_bytes: int | str, alignment: int = 16) -> None:
        """
        Free a block, given the size and alignment that it was allocated with.

        Raises InputError with the address and both sizes, and changes nothing, if no block of
        that size begins there or the address is not a multiple of `alignment`.
        """

    def allocate_many(self, count: int, size_bytes: int | str, alignment: int = 16) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """
        Return the addresses of `count` blocks; raises OutOfMemoryError and allocates none if one is refused.
        """

    def deallocate_many(self, addresses: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], size_bytes: int | str, alignment: int = 16) -> None:
        """
        Free blocks; raises InputError if an address is not a block's, but frees the others.
        """

    def owns(self, address: int) -> bool:
        """Whether the byte is in memory of this resource."""

    def trim(self) -> int:
        """Give unused memory back upstream; return its bytes."""

    @property
    def supports_free(self) -> bool:
        """Whether a freed block can be allocated again."""

    @property
    def largest_bytes(self) -> int:
        """
        Bytes above which no request can ever be met; 2**64 - 1 if only the system knows.
        """

    def statistics(self) -> ResourceStatistics: ...

    def __eq__(self, other: object | None) -> bool:
        """Whether blocks of one resource may be freed through the other."""

    def __hash__(self) -> int: ...

    def __copy__(self) -> None: ...

    def __deepcopy__(self, arg: object, /) -> None: ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str: ...

    def allocate_block(self, size_bytes: int | str, alignment: int = 16) -> Block:
        """
        Allocate a block that is given back when the last view of it dies.

        Raises as `allocate` does; a block may have 0 bytes.
        """

class Block:
    """Block of a memory resource, given back when the last view of it dies."""

    @property
    def address(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def resource(self) -> MemoryResource: ...

    @property
    def __array_interface__(self) -> dict[str, object]: ...

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """Return the bytes as a uint8 array that keeps the block alive."""

    def __dlpack__(self, **options: object) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __len__(self) -> int: ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str: ...

    def __copy__(self) -> None: ...

    def __deepcopy__(self, arg: object, /) -> None: ...

def current_cpu() -> int:
    """
    Return the number of the processor that the calling thread runs on now.
    """

class PageResource(MemoryResource):
    """Whole pages, mapped for each block."""

    @property
    def current_bytes(self) -> int: ...

    @property
    def peak_bytes(self) -> int: ...

    @property
    def allocation_count(self) -> int:
        """Allocations since the resource was made."""

class HostResource(PageResource):
    """Zeroed private pages, huge ones where they fit."""

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *, node: int = -1, is_filled: bool = False, is_locked: bool = False) -> None:
        """
        Use pages of NUMA node `node` while it has some, -1 for any; `is_filled` backs them with
        memory at once, `is_locked` keeps them there as far as the process may.
        """

    @property
    def locked_bytes(self) -> int:
        """Bytes that could be locked, of all blocks since the resource was made."""

class SharedResource(PageResource):
    """Pages of files, one file for each block; a forked child shares them."""

    def descriptor_of(self, address: int) -> int:
        """Return the open file of a block, for another process to map."""

class SegmentResource(SharedResource):
    """Shared memory without a name."""

    def __init__(self) -> None: ...

class FileResource(SharedResource):
    """Files without a name in a folder, mapped."""

    def __init__(self, folder: str | os.PathLike[str]) -> None: ...

class RegionResource(MemoryResource):
    """One block at a time in a writable buffer of the caller."""

    def __init__(self, buffer: object, *, is_shared: bool = False) -> None:
        """Use a buffer; `is_shared` tells that a fork does not copy its memory."""

class BumpResource(MemoryResource):
    """
    Blocks that are freed together: a pointer that moves forward, one for each processor.
    """

    def __init__(self, upstream: MemoryResource, size_bytes: int | str, part_count: int = 0, control: MemoryResource | None = None) -> None:
        """
        Take `size_bytes` of `upstream`, in `part_count` parts, 0 for one per processor.
        `control` keeps the cursors, else the region itself does.
        """

    @property
    def capacity_bytes(self) -> int: ...

    @property
    def part_count(self) -> int: ...

    def reset(self) -> None:
        """Free every block and every mark. No thread may be allocating."""

    def mark(self) -> int:
        """Return a mark to `rewind` to. No thread may be allocating."""

    def rewind(self, mark: int) -> None:
        """
        Free every block and mark made since this mark. No thread may be allocating.
        """

class SlabResource(MemoryResource):
    """Blocks of one size, with a bit for each."""

    def __init__(self, upstream: MemoryResource, size_bytes: int | str, block_bytes: int | str, control: MemoryResource | None = None) -> None:
        """
        Take `size_bytes` of `upstream`, split into blocks of `block_bytes`, a multiple of 8.
        `control` keeps the bits, else the region itself does.
        """

    @property
    def capacity_bytes(self) -> int: ...

    @property
    def block_bytes(self) -> int: ...

    @property
    def block_count(self) -> int: ...

    @property
    def alignment(self) -> int:
        """Largest power of two that divides the address of every block."""

class CommittedRange:
    """Range of addresses whose front is backed by zeroed private pages."""

    def __init__(self, capacity_bytes: int) -> None:
        """
        Reserve whole pages of addresses, none of them backed.

        Raises MemoryError if the system refuses.
        """

    @property
    def address(self) -> int: ...

    @property
    def capacity_bytes(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """Backed bytes."""

    def resize(self, size_bytes: int) -> bool:
        """
        Back the first `size_bytes`, and give bytes after them back to the system; the others
        keep their contents. Returns False, changing nothing, if the system refuses.
        """

    def discard(self, start: int, stop: int) -> int:
        """
        Give back the huge pages that lie wholly in bytes [start, stop); they are zeros when
        next touched. Returns their bytes.
        """

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """
        Return the backed bytes as a uint8 array that keeps the range alive. Bytes that are
        given back later must not be touched.
        """

class PageRange:
    """
    Addresses whose small pages are backed, given back and replaced by a file's.

    Ranges of pages are two int64 arrays, of first pages and of those behind the last.
    """

    def __init__(self, capacity_bytes: int) -> None:
        """
        Reserve whole pages of addresses, all closed.

        Raises MemoryError if the system refuses.
        """

    @property
    def capacity_bytes(self) -> int: ...

    def open(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """
        Open closed pages, which are private and zero. Returns how many ranges were opened before
        the system refused.
        """

    def close(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """
        Close pages of any kind; their contents are lost. Returns how many ranges were closed
        before the system refused.
        """

    def discard(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Make open pages zero and give their memory back; they stay open."""

    def show(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], file: int, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """
        Show pages of a file from page `offsets` on, to be read only. Returns how many ranges are
        shown; a further one was refused and is as it was.
        """

    @staticmethod
    def free(file: int, start: int, count: int) -> bool:
        """
        Give the memory of a file's pages from `start` on back. Returns False if its file system
        cannot.
        """

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """
        Return all bytes as a uint8 array that keeps the range alive; only those of open pages
        may be written.
        """

def default_slabs() -> list[tuple[int, float]]:
    """Return the default block sizes and shares of a composite."""

class FreeListResource(MemoryResource):
    """
    Serves requests from freed blocks of any size, which it joins and splits.
    """

    def __init__(self, upstream: MemoryResource, *, best_fit: bool = True, chunk_bytes: int | str = 0, upstream_first: bool = False) -> None:
        """
        Serve from freed blocks, then from `upstream`, at least `chunk_bytes` at once. Without
        `best_fit` the first block of the list that is large enough is taken;
        `upstream_first` uses the list only when upstream refuses.
        """

    @property
    def free_bytes(self) -> int: ...

    @property
    def free_count(self) -> int:
        """Number of blocks in the list."""

class CompositeResource(MemoryResource):
    """
    Slabs of several sizes, a bump for other sizes, and a free list of its freed blocks.
    """

    def __init__(self, upstream: MemoryResource, size_bytes: int | str, *, slabs: Sequence[tuple[int | str, float]] | None = None, best_fit: bool = True, free_list_last: bool = False) -> None:
        """
        Take `size_bytes` of `upstream`. `slabs` are pairs of a block's bytes and its share of
        the region, in ascending order; `free_list_last` serves from freed blocks only when
        the bump is used up.
        """

    @property
    def slabs(self) -> list[SlabResource]: ...

    @property
    def bump(self) -> BumpResource: ...

    @property
    def free_list(self) -> FreeListResource: ...

class Adaptor(MemoryResource):
    """
    Base of resources that change the behaviour of their upstream and own no memory.
    """

    @property
    def upstream(self) -> MemoryResource: ...

class LimitingResource(Adaptor):
    """Limits the bytes that are live at a time."""

    def __init__(self, upstream: MemoryResource, limit_bytes: int | str, *, setting: str = '') -> None:
        """
        Count requested bytes. Refusals name `setting` as the source of the limit.
        """

    @property
    def current_bytes(self) -> int: ...

    @property
    def limit_bytes(self) -> int: ...

class AlignedResource(Adaptor):
    """Aligns blocks more coarsely than requested."""

    def __init__(self, upstream: MemoryResource, alignment: int, threshold_bytes: int | str = 0) -> None:
        """Align blocks of `threshold_bytes` and more to `alignment` at least."""

class ResourceCounters:
    """
    Counters of blocks allocated within a scope: live now, at peak, and in total.
    """

    @property
    def current_bytes(self) -> int:
        """Live bytes; below 0 if blocks from before the scope were freed."""

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

    def __repr__(self) -> str: ...

class StatisticsResource(Adaptor):
    """Counts requests in nested scopes."""

    def __init__(self, upstream: MemoryResource) -> None: ...

    def counters(self) -> ResourceCounters:
        """Return the counters of the innermost scope."""

    def push(self) -> int:
        """Begin a scope at zero; return the number of open scopes."""

    def pop(self, depth: int) -> ResourceCounters:
        """
        End the innermost scope, for which `push` returned `depth`, and add it to the one
        around it. Raises InputError if another scope is the innermost.
        """

class TracingResource(Adaptor):
    """
    Writes a CSV line for each call: `Thread,Time,Action,Pointer,Size,Stream`.
    """

    def __init__(self, upstream: MemoryResource, path: str | os.PathLike[str]) -> None:
        """
        Overwrite the file. Lines are buffered until `flush` or the resource's end.
        """

    def flush(self) -> None:
        """
        Write buffered lines; raises InputError if any line ever failed to be written.
        """

    @property
    def path(self) -> str: ...

class FailingResource(Adaptor):
    """Refuses chosen allocations, to test how callers cope."""

    def __init__(self, upstream: MemoryResource, first: int, count: int = 1) -> None:
        """Refuse `count` allocations from number `first` on, counted from 1."""

    @property
    def allocation_count(self) -> int:
        """Requests so far, refused ones included."""

class BinningResource(Adaptor):
    """Serves sizes from different resources."""

    def __init__(self, upstream: MemoryResource, bins: Sequence[tuple[int | str, MemoryResource]]) -> None:
        """
        Use `bins`, pairs of a largest size and a resource for it, in ascending order.
        Larger sizes go to `upstream`; a bin that is full refuses.
        """

class FallbackResource(Adaptor):
    """Serves from one resource, and from another what the first refuses."""

    def __init__(self, first: MemoryResource, second: MemoryResource) -> None:
        """
        Ask `first`, then `second` if that refuses. Each block goes back to the resource
        that it came from.

        Raises InputError if both are the same resource.
        """

    @property
    def second(self) -> MemoryResource: ...

    @property
    def second_count(self) -> int:
        """Live blocks of the second resource."""

class CombiningResource(Adaptor):
    """
    Combines concurrent requests: one of the threads serves all with one call.
    """

    def __init__(self, upstream: MemoryResource) -> None: ...

    @property
    def handed_count(self) -> int:
        """Blocks that one thread obtained for another."""

class CallbackResource(MemoryResource):
    """Blocks that Python functions allocate and free."""

    def __init__(self, allocate: Callable[[int, int], int], deallocate: Callable[[int, int, int], None]) -> None:
        """
        Call `allocate(size_bytes, alignment)`, which returns an address, or 0 to refuse; an
        exception or an unaligned address is a refusal too. `deallocate(address, size_bytes,
        alignment)` frees it.
        """

    def __del__(self) -> None: ...

class FailureCallbackResource(Adaptor):
    """Repeats refused requests if a function says so."""

    def __init__(self, upstream: MemoryResource, callback: Callable[[int], bool]) -> None:
        """
        Call `callback(size_bytes)` when memory is refused: True asks again, False (or an
        exception, which is written to standard error) lets the refusal stand.
        """

class LiveBlock:
    """Record of a live block."""

    @property
    def address(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """Requested bytes."""

    @property
    def alignment(self) -> int: ...

    @property
    def number(self) -> int:
        """Number of the allocation, counted from 1."""

    @property
    def origin(self) -> str:
        """
        Python frames of the request, a line each, the innermost first; empty if not recorded.
        """

class TrackingResource(Adaptor):
    """Records live blocks, and the Python frames that requested them."""

    def __init__(self, upstream: MemoryResource, *, stacks: bool = False) -> None:
        """
        Record live blocks; with `stacks` also the innermost 16 Python frames of each.
        """

    def live(self) -> list[LiveBlock]:
        """Return live blocks, the oldest first."""

    @property
    def live_bytes(self) -> int: ...

class GuardedResource(Adaptor):
    """
    Detects writes outside of blocks, or after they were freed, by canaries and a quarantine.
    """

    def __init__(self, upstream: MemoryResource, *, quarantine_bytes: int | str = 1048576) -> None:
        """
        Put blocks between canaries of 32 bytes; a damaged block cannot be given back. Freed
        blocks of up to `quarantine_bytes` wait before they can be allocated again.
        """

    def faults(self) -> list[str]:
        """Describe each damaged block, live or freed. No thread may be writing."""

    @property
    def quarantined_bytes(self) -> int: ...

class GuardPageResource(Adaptor):
    """
    Stops a program at the first access outside of a block, by pages without access rights.
    """

    def __init__(self, upstream: MemoryResource, *, quarantine_bytes: int | str = 1048576) -> None:
        """
        End each block at a page without access rights, as closely as its alignment allows; a
        signal stops a program that touches it, or one of the last `quarantine_bytes` freed.
        A block takes three pages at least.
        """

    @property
    def quarantined_bytes(self) -> int: ...

def process_mappings() -> tuple[int, int]:
    """
    Return the number of address ranges that the process has mapped, and the most that the
    system allows; 0 if unknown.
    """

class PagedDevice:
    """Physical chunks and addresses of a device, and mappings between them."""

    @property
    def granularity_bytes(self) -> int:
        """Bytes that sizes of chunks are multiples of."""

class HostDevice(PagedDevice):
    """Private pages, moved from address to address without a copy."""

    def __init__(self) -> None: ...

class SharedDevice(PagedDevice):
    """Pages of a file in memory that other processes can map."""

    def __init__(self) -> None: ...

    @property
    def descriptor(self) -> int:
        """Number of the open file."""

class FailingDevice(PagedDevice):
    """Refuses chosen calls, to test how callers cope."""

    def __init__(self, device: PagedDevice, first: int, count: int = 1) -> None:
        """
        Refuse `count` calls to create, reserve, map, unmap or grow, from number `first` on.
        """

    def __del__(self) -> None: ...

    @property
    def call_count(self) -> int:
        """Number of such calls so far."""

class PythonDevice(PagedDevice):
    """Device made of two Python functions."""

    def __init__(self, create_physical_memory: Callable[[int], object], create_virtual_memory: Callable[[int, int], object], *, granularity_bytes: int = 4096, maps_twice: bool = False) -> None:
        """
        Call `create_physical_memory(size_bytes)` for a chunk, any object, and
        `create_virtual_memory(size_bytes, alignment)` for an object with `address` and the
        methods `map(offset_bytes, chunks)`, `unmap(offset_bytes, chunks)` and
        `extend(more_bytes)`, true when done. None, false or an exception is a refusal; an
        object gives its memory back when it is dropped.
        """

class Stream:
    """Work done in order, concurrently to the thread that submits it."""

class HostStream(Stream):
    """Thread that runs functions in the order of submission."""

    def __init__(self) -> None: ...

    def submit(self, work: Callable[[], object]) -> None:
        """
        Run a function after those submitted before; its exceptions are written to stderr.
        """

    def synchronize(self) -> None:
        """Wait until everything submitted so far is done."""

class PythonStream(Stream):
    """Stream of work that Python code tracks."""

    def __init__(self, record: Callable[[], object]) -> None:
        """
        Call `record()` for a fence after all work so far: an object with `is_signalled()`, or
        None if all is done.
        """

    def __del__(self) -> None: ...

class VirtualStatistics:
    """Counters of a virtual resource; exact while no call is in flight."""

    @property
    def requested_bytes(self) -> int:
        """Requested bytes of live blocks."""

    @property
    def allocated_bytes(self) -> int:
        """Bytes that live blocks take."""

    @property
    def peak_allocated_bytes(self) -> int:
        """Maximum of these bytes so far."""

    @property
    def physical_bytes(self) -> int:
        """Bytes of all chunks, live and cached."""

    @property
    def peak_physical_bytes(self) -> int:
        """Maximum of these bytes so far."""

    @property
    def cached_bytes(self) -> int:
        """Bytes of chunks without a live block."""

    @property
    def address_bytes(self) -> int:
        """Bytes of reserved addresses."""

    @property
    def waiting_count(self) -> int:
        """Addresses kept for unfinished work."""

    @property
    def allocation_count(self) -> int:
        """Allocations since the resource was made."""

    @property
    def exact_count(self) -> int:
        """Allocations served by memory that was mapped already."""

    @property
    def remap_count(self) -> int:
        """Allocations for which chunks were mapped elsewhere."""

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

    def __repr__(self) -> str: ...

class VirtualResource(MemoryResource):
    """Blocks at addresses that chunks are mapped to, and moved between."""

    def allocate_on(self, size_bytes: int | str, stream: Stream | None, alignment: int = 16) -> int:
        """Allocate as `allocate` does, for use in the order of a stream."""

    def deallocate_on(self, address: int, size_bytes: int | str, stream: Stream | None, alignment: int = 16) -> None:
        """
        Free as `deallocate` does, while work of the stream may still use the block: it serves
        the same stream at once, others when that work is done.
        """

    def virtual_statistics(self) -> VirtualStatistics: ...

    def blocks(self) -> list[tuple[int, int, int, int, str]]:
        """
        List blocks that have memory: start of the segment, address, size, requested bytes (0
        unless live), and `live`, `awaiting` (work may still use it), `kept` (for a request of
        its size) or `free`.
        """

    def record_events(self, count: int) -> None:
        """Keep the last `count` events from now on; 0, the default, keeps none."""

    def events(self) -> list[tuple[str, int, int, int]]:
        """
        List events, the oldest first: `allocated`, `freed`, `mapped` or `unmapped`, address,
        bytes (of a block: the size requested), nanoseconds since 1970.
        """

class ChunkedVirtualResource(VirtualResource):
    """
    Virtual caching allocator as published: with caches of chunks and of addresses.
    """

    def __init__(self, device: PagedDevice, chunk_bytes: int | str = 20971520) -> None: ...

    def __del__(self) -> None: ...

    @property
    def chunk_bytes(self) -> int: ...

    def set_chunk_size(self, chunk_bytes: int | str) -> None:
        """Set the size of chunks made from now on; cached chunks are given back."""

class StealingVirtualResource(VirtualResource):
    """
    Blocks of any size from one range of addresses; free pages move to where they are needed.
    """

    def __init__(self, device: PagedDevice, *, page_bytes: int | str = 2097152, max_bytes: int | str | None = None, keep_bytes: int | str = 0, idle_s: float = 10.0, patience_s: float = 1.0) -> None:
        """
        Map memory in pages, at most `max_bytes`. Memory not needed for `idle_s` is given
        back, except `keep_bytes`. A request waits up to `patience_s` for unfinished work
        before further memory is made.
        """

    def __del__(self) -> None: ...

class GrowingVirtualResource(VirtualResource):
    """Page stealing in pages from 16 KiB, while little is live, to 2 MiB."""

    def __init__(self, device: HostDevice, *, max_bytes: int | str | None = None, idle_s: float = 10.0, patience_s: float = 1.0) -> None:
        """
        Map private memory, at most `max_bytes`, in pages of a size that follows what is
        live. The others as for `StealingVirtualResource`.
        """

    def __del__(self) -> None: ...

class PlannedResource(Adaptor):
    """Serves a repeated sequence of requests at planned offsets."""

    def __init__(self, upstream: MemoryResource) -> None: ...

    def restart(self) -> None:
        """Begin an iteration: the plan's first request is expected next."""

    def recorded(self) -> list[tuple[int, int, int, int | None]]:
        """
        List requests since `restart`: size, alignment, step of allocation, step of freeing or
        None. Steps count allocations and frees.
        """

    def set_plan(self, requests: Sequence[tuple[int, int, int | None]], capacity_bytes: int, alignment: int) -> None:
        """
        Expect requests of a size, alignment and offset each (None: upstream serves it), within
        `capacity_bytes` of upstream.

        Raises OutOfMemoryError if upstream refuses these; InputError if a block of the previous
        plan is live, or a request is outside.
        """

    @property
    def hit_count(self) -> int:
        """Requests that matched the plan."""

    @property
    def surprise_count(self) -> int:
        """
        Requests that did not match, or whose place was taken; upstream served them.
        """

    @property
    def planned_count(self) -> int:
        """Live blocks at planned offsets."""

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the plan; 0 without one."""

class CudaDevice(PagedDevice):
    """Chunks of a CUDA device's memory, at addresses of its driver."""

    def __init__(self, ordinal: int = 0, driver_library: str | None = None) -> None:
        """
        Open a device. The driver is `driver_library`, else `TIGHTSHIP_CUDA_DRIVER_LIBRARY`,
        else the system's. Raises LibraryError if the driver is missing, or lacks the device.
        """

    @property
    def total_bytes(self) -> int:
        """Bytes of the device's memory."""

class CudaStream(Stream):
    """CUDA stream made elsewhere."""

    def __init__(self, device: CudaDevice, handle: int = 0) -> None:
        """
        Wrap the CUstream `handle`, 0 for the default one; it must outlive this object.
        """

def configure_cuda_pools(*, page_bytes: int | str = 2097152, max_bytes: int | str | None = None, patience_s: float = 1.0, driver_library: str | None = None) -> None:
    """
    Set the pools' settings; refused while blocks are in use under other settings.
    """

def cuda_pool_statistics(device: int) -> VirtualStatistics: ...

def cuda_pool_live_count(device: int) -> int: ...

def cuda_pool_stream_count(device: int) -> int:
    """Return the number of stream handles that the pool remembers."""

def trim_cuda_pool(device: int) -> int: ...

class DynamicPools:
    """
    Pools of a model for arrays that its runs make outside the plan, reused by later runs.
    """

    def __init__(self, budget_bytes: int) -> None:
        """Make pools of which free ones hold at most `budget_bytes`."""

    @property
    def pools(self) -> PoolManager:
        """Manager of these pools, which counts them."""

    @property
    def is_held(self) -> bool:
        """Return whether any pool is held, reserved or free."""

    def release_unused(self) -> int:
        """Give all free pools back; return their bytes."""

class DynamicMemory:
    """
    Memory of a run outside its plan: arrays that a thread makes within `with` come from pools, small ones from the heap; one beyond the limit raises MemoryError.
    """

    def __init__(self, pools: DynamicPools, limit_bytes: int | None = None) -> None: ...

    def __enter__(self) -> DynamicMemory: ...

    def __exit__(self, *args: object) -> None: ...

    def end(self) -> None:
        """End the run: arrays that are alive are the caller's."""

    @property
    def live_bytes(self) -> int:
        """Bytes of arrays that are alive; counted only if there is a limit."""

    @property
    def peak_bytes(self) -> int: ...

    @property
    def refused_bytes(self) -> int:
        """
        Live bytes that there would have been with the last refused request, or 0.
        """

class NumpyScope:
    """Makes a thread's arrays within `with` blocks of a resource."""

    def __init__(self, resource: MemoryResource) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

class NumpyThreadsScope:
    """
    Makes the arrays of all threads within `with` blocks of a resource, but for threads in another scope.
    """

    def __init__(self, resource: MemoryResource) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

class Replayed:
    """Result of replaying a recorded sequence."""

    @property
    def peak_live_bytes(self) -> int:
        """Largest sum of requested bytes of live blocks."""

    @property
    def peak_held_bytes(self) -> int:
        """Most bytes that the resource had touched; 0 if not measured."""

    @property
    def live_bytes(self) -> list[int]:
        """Maximum in each part of the sequence."""

    @property
    def held_bytes(self) -> list[int]:
        """Maximum in each part of the sequence."""

    @property
    def refused_count(self) -> int: ...

    @property
    def duration_ns(self) -> int:
        """Processor time of the thread."""

def replay(resource: MemoryResource, slots: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, part_count: int) -> Replayed:
    """
    Allocate `sizes[i]` bytes into slot `slots[i]`, or free the block of slot `~slots[i]`.
    A slot must be free when a block is put into it. Held bytes are measured unless
    `part_count` is 0.
    """

class MallocResource(MemoryResource):
    """
    The C library's allocator, for comparison; it does not check freed blocks.
    """

    def __init__(self) -> None: ...

class StopFlag:
    """Flag that any thread sets to end a run between two steps."""

    def __init__(self) -> None: ...

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

class Sha256:
    """SHA-256 of bytes that come in parts."""

    def __init__(self) -> None: ...

    def update(self, content: bytes | bytearray | memoryview | NDArray[numpy.uint8]) -> None:
        """Add bytes to those before."""

    def digest(self) -> bytes:
        """Return the 32 bytes of the digest of all bytes so far."""

class BytePairs:
    """
    Encoder of words by a list of merges. May be used from several threads.
    """

    def __init__(self, tokens: list[str], merges: list[str], ignores_merges: bool) -> None:
        """
        Take the tokens by number, and pairs of them with a space between, the first to be joined first.

        With `ignores_merges`, a word that is a token becomes it.

        Raises:
            ValueError: A merge is not a pair, or its parts or result are not tokens.
        """

    def encode(self, words: list[str]) -> list[int]:
        """
        Return the tokens of words, one after the other; letters without a token are left out.
        """

def gguf_texts(stored: bytes | memoryview, count: int) -> list[str] | None:
    """
    Return texts of a GGUF file, each behind its length of 8 bytes; None if they are not there, or one is not UTF-8.
    """

def gguf_texts_bytes(stored: bytes | memoryview, count: int) -> int | None:
    """Return the bytes that such texts take; None if they are not there."""

def gguf_integers(blocks: NDArray[numpy.uint8], bits: int, room: NDArray[numpy.uint8]) -> None:
    """
    Write the integers of blocks of Q4_0 (4 bits) or Q8_0 (8 bits) as unsigned ones, those of 4 bits with neighbours in a byte.
    """

def gguf_scales(blocks: NDArray[numpy.uint8], bits: int, room: NDArray[numpy.uint8]) -> None:
    """Write the bytes of the scales of such blocks."""

class GuardedMapping:
    """Mapped part of a file that another process may truncate."""

    def __init__(self, file: int, offset_bytes: int, size_bytes: int) -> None:
        """
        Map bytes of a file that is open to read and write, from a multiple of the page size.

        Raises MemoryError if the system refuses, or too many are mapped.
        """

    @property
    def is_lost(self) -> bool:
        """
        Whether bytes were touched that the file no longer has, or that the system had no page
        for: the whole mapping is private zeros since then.
        """

    def array(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """Return its bytes as a uint8 array that keeps them mapped."""

HAS_ONEDNN: bool = True

class OneDnnLibraryError(ImportError):
    pass

class OneDnnError(RuntimeError):
    pass

def onednn_open(path: str) -> None:
    """
    Open the library once for the process; raises OneDnnLibraryError with the reason.
    """

def onednn_is_open() -> bool: ...

def onednn_version() -> str: ...

def onednn_openmp() -> str:
    """
    Return the owner of its threads: `tightship`, or the file of another OpenMP runtime.
    """

def onednn_path() -> str: ...

def onednn_cpu_isa() -> int: ...

def set_onednn_threads(count: int) -> None:
    """
    Set the threads of primitives that the calling thread describes from now on.
    """

def onednn_threads() -> int: ...

class Reorderer:
    """
    Copies operands into other layouts; its generated code is released with it.
    """

    def __init__(self) -> None: ...

    def run(self, src: MemoryDesc, from_address: int, dst: MemoryDesc, to_address: int) -> None:
        """
        Copy an operand; both addresses must hold the bytes that their layouts describe.
        """

class MemoryDesc:
    """Shape, element type and layout of an operand."""

    def __init__(self, dims: Sequence[int], dtype: str = 'float32', strides: Sequence[int] | None = None) -> None: ...

    @staticmethod
    def any(dims: Sequence[int], dtype: str = 'float32') -> MemoryDesc:
        """Leave the layout to the primitive."""

    @staticmethod
    def named(dims: Sequence[int], dtype: str, format: str) -> MemoryDesc:
        """Make a layout from its name, as `format` returns it."""

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
        """
        Bytes from the operand's address to the end of its last element, padding included.
        """

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
        """Bytes to make it again from; empty if the layout cannot be encoded."""

    @staticmethod
    def of_recipe(recipe: bytes) -> MemoryDesc:
        """Make a layout from a recipe; raises RecipeError or OneDnnError."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Attributes:
    """Post-operations, scales and zero points of a primitive."""

    def __init__(self) -> None: ...

    def add_sum(self, scale: float = 1.0) -> None: ...

    def add_eltwise(self, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> None: ...

    def add_binary(self, algorithm: str, operand: MemoryDesc) -> None: ...

    def scale(self, argument: int, mask: int) -> None: ...

    def zero_point(self, argument: int, mask: int) -> None: ...

class PrimitiveDesc:
    """Implementation chosen for fixed shapes and layouts, not compiled yet."""

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
    def inner_product(src_weights_bias_dst: Sequence[MemoryDesc | None], attributes: Attributes) -> PrimitiveDesc: ...

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
        Return the layout of the operand of an argument number; null if it has none.
        """

    def next_implementation(self) -> bool: ...

    def reach(self) -> list[tuple[int, int]]:
        """
        Return arguments of a run, without the scratchpad, each with the bytes that may be touched.
        """

    @property
    def skipped(self) -> int:
        """Number of implementations skipped."""

    @property
    def recipe(self) -> bytes:
        """
        Bytes to make it again from, up to the implementation, if recorded; else empty.
        """

    @staticmethod
    def of_recipe(recipe: bytes) -> PrimitiveDesc:
        """
        Make an object from a recipe; raises RecipeError, or as its factory does.
        """

class KernelError(RuntimeError):
    pass

class NativeKernel:
    """
    Native kernel of an operator for fixed shapes, with a factory for each; operands: inputs, outputs, scratch.
    """

    @staticmethod
    def of_recipe(recipe: bytes) -> NativeKernel:
        """
        Make an object from a recipe; raises RecipeError, or as its factory does.
        """

    def reach(self) -> list[tuple[int, int]]:
        """
        Return the byte range [low, high) of each operand, relative to its address, that a run may touch; scratch excluded.
        """

    @property
    def written(self) -> int:
        """
        Number of operands, counted from the last, that a run writes; it only reads the others.
        """

    @property
    def recipe(self) -> bytes:
        """Bytes to make it again from, if recorded; else empty."""

    def scratch_bytes(self, threads: int) -> int:
        """Return the bytes of its scratch, the last operand."""

    @staticmethod
    def elementwise(name: str, types: Sequence[str], shape: Sequence[int], strides: Sequence[Sequence[int]], parameters: Sequence[float]) -> NativeKernel | None:
        """
        Inputs, output: an operator on each element; types and strides (bytes) of inputs, then of the output. None if no kernel has these types.
        """

    @staticmethod
    def elementwise_names() -> list[str]:
        """Names that `elementwise` has kernels of, sorted."""

    @staticmethod
    def streamed_bytes(name: str, type: str) -> int | None:
        """
        Bytes of a dense result from which an `elementwise` of operands of one shape writes around the caches; None if it never does on this processor.
        """

    @staticmethod
    def reduction(name: str, dtype: str, kept: tuple[Sequence[int], Sequence[int], Sequence[int]], reduced: tuple[Sequence[int], Sequence[int]]) -> NativeKernel | None:
        """
        Make a reduction. Operands: source, target. `kept`: shape of kept axes, strides (bytes) in both; `reduced`: shape and strides of reduced axes. None if no kernel has this name for the dtype.
        """

    @staticmethod
    def normalization(dtype: str, rows: tuple[int, int, int, int], by_segment: bool, present: Sequence[bool], is_centered: bool, epsilon: float) -> NativeKernel | None:
        """
        Make a normalization of rows. Operands, as far as `present`: source, scale, bias, target, means, inverse deviations. `rows`: count, parts of each, length of a part, parameters.
        """

    @staticmethod
    def softmax(dtype: str, rows: tuple[int, int, int], is_logarithm: bool) -> NativeKernel | None:
        """
        Make a softmax or its logarithm. Operands: source, target; `rows` is (before, along, after) the axis.
        """

    @staticmethod
    def position(dtype: str, rows: tuple[int, int, int], is_largest: bool, takes_last: bool) -> NativeKernel | None:
        """
        Make an ArgMax or ArgMin. Operands: source, target (int64); `rows` is (before, along, after) the axis.
        """

    @staticmethod
    def hardmax(dtype: str, rows: tuple[int, int, int]) -> NativeKernel | None:
        """
        Make a Hardmax. Operands: source, target; `rows` is (before, along, after) the axis.
        """

    @staticmethod
    def best(dtype: str, rows: tuple[int, int, int], count: int, is_largest: bool) -> NativeKernel | None:
        """
        Make a TopK of `count` sorted elements. Operands: source, values, indices, scratch.
        """

    @staticmethod
    def running_sum(dtype: str, rows: tuple[int, int, int], is_exclusive: bool, is_reverse: bool) -> NativeKernel | None:
        """
        Make a CumSum. Operands: source, target; `rows` is (before, along, after) the axis.
        """

    @staticmethod
    def copy(item_bytes: int, shape: Sequence[int], source_strides: Sequence[int], target_strides: Sequence[int]) -> NativeKernel:
        """
        Make a copy to another layout of the same shape. Operands: source, target; strides in bytes.
        """

    @staticmethod
    def moves(item_bytes: int, moves: Sequence[tuple[Sequence[int], tuple[int, int, Sequence[int]], tuple[int, int, Sequence[int]]]]) -> NativeKernel:
        """
        Make several copies in one kernel. Each move: shape, source and target, as (operand number, byte of the first element, strides in bytes).
        """

    @staticmethod
    def gather(item_bytes: int, indexing: tuple[str, int, Sequence[int], Sequence[int], Sequence[tuple[int, int, int]]], walk: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], blocks: tuple[int, int] = (0, 0)) -> NativeKernel:
        """
        Make a gather. Operands: data, indices, result. `indexing`: node, bytes of an index, shape and strides of the tuples, and for each of their indices (length, index step, data step). `walk`: shape; strides of data, tuples, result. `blocks`: elements in a block of the data (0 for none) and bytes from block to block.
        """

    @staticmethod
    def scatter(type: tuple[int, str, str], indexing: tuple[str, int, Sequence[int], Sequence[int], Sequence[tuple[int, int, int]]], walk: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], whole: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> NativeKernel | None:
        """
        Make a scatter. Operands: data, indices, updates, result. `type`: item bytes, dtype, reduction. `walk`: shape; strides of result, tuples, updates. `whole`: the data's shape and strides, and the result's strides. None if the dtype has no such reduction.
        """

    @staticmethod
    def lookup(item_bytes: int, items: int, has_fill: bool, tables: Sequence[Sequence[int]]) -> NativeKernel:
        """
        Make a lookup. Operands: source[, fill], target. The source byte of an element is the sum of one entry per axis of `tables`; a negative entry fills. An entry stands for `items` elements.
        """

    @staticmethod
    def taps(axes: Sequence[tuple[Sequence[int], Sequence[Sequence[int]], Sequence[Sequence[float]]]]) -> NativeKernel:
        """
        Make weighted sums of source elements, one axis after another. Operands: source, target (float32), scratch. `axes`: elements before, along and after the axis, then indices and weights by tap and position; without weights the largest element is taken.
        """

    @staticmethod
    def largest_places(dtype: str, images: int, axes: tuple[Sequence[int], Sequence[int], Sequence[int]], window: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]) -> NativeKernel | None:
        """
        Make a MaxPool that finds places. Operands: source, target, places (int64). `axes`: lengths of the image, of the result, and what a coordinate adds to a place; `window`: its size, strides, dilations and padding before.
        """

    @staticmethod
    def sample(how: Sequence[str], aligns_corners: bool, sizes: Sequence[int], lengths: Sequence[int], source_steps: Sequence[int], target_steps: Sequence[int]) -> NativeKernel:
        """
        Make a GridSample. Operands: source, grid, target, of float32. `how`: nearest, linear or cubic; zeros, border or reflection. `sizes`: images, channels, positions. Steps in elements: of images, channels, then spatial axes (source) or positions (target).
        """

    @staticmethod
    def fills(fills: Sequence[tuple[bytes, int, Sequence[int], Sequence[int]]]) -> NativeKernel:
        """
        Make fills of one target. Each fill: an element as bytes, a byte offset, shape, strides (bytes).
        """

    @staticmethod
    def triangle(item_bytes: int, upper: bool, has_diagonal: bool, shape: Sequence[int], source_strides: Sequence[int]) -> NativeKernel:
        """
        Make a Trilu. Operands: source[, diagonal], target; zeros outside the triangle of each matrix.
        """

    @staticmethod
    def one_hot(item_bytes: int, dtype: str, shape: tuple[int, int, int]) -> NativeKernel | None:
        """
        Make a OneHot. Operands: indices of `dtype`, off and on values, target; `shape` is (outer, depth, inner).
        """

    @staticmethod
    def ramp(dtype: str, count: int) -> NativeKernel | None:
        """Make a Range. Operands: start, step, target of `count` numbers."""

    @staticmethod
    def reverse_sequences(node: str, sizes: Sequence[int], steps_first: bool) -> NativeKernel:
        """
        Make a ReverseSequence. Operands: data, lengths, target. `sizes`: sequences, steps, bytes of a step.
        """

    @staticmethod
    def append(node: str, sizes: Sequence[int], update_strides: Sequence[int], has_firsts: bool, is_circular: bool, type: str = 'float32', width: int = 0) -> NativeKernel:
        """
        Make an append to a cache. Operands: past, update[, first steps], target. `sizes`: batches, groups, steps, new steps, bytes of a new step; the strides, in bytes, are between batches, groups and steps. With a `width`, rows of so many float32 are rounded to `type`.
        """

    class AttentionRule:
        """
        Rule by which scores become weights; `mask` is none, added, kept or hidden.
        """

        def __init__(self, scale: float, mask: str = 'none', fill: float = 0.0, ahead: int = -1, behind: int = -1, first: int = 0, cap: float = 0.0, counted: bool = False, sinks: bool = False, zero_if_undefined: bool = False, zero_if_unseen: bool = False) -> None: ...

    @staticmethod
    def attention(node: str, outer: Sequence[int], sizes: Sequence[int], rule: NativeKernel.AttentionRule, strides: Sequence[Sequence[int]], key_type: str = 'float32', value_type: str = 'float32', most: str = 'avx512') -> NativeKernel:
        """
        Make an attention. Operands: queries, keys, values[, mask][, lengths][, sinks], target, scratch. `sizes`: queries, keys, depth, width; `strides` in bytes. Keys and values may be float16, bfloat16, or int8 with a float32 behind each row, its scale. `most`: the newest instructions to use, portable, avx2 or avx512.
        """

    class ConvolutionShape:
        """Shape of a convolution over two spatial axes, channels last."""

        def __init__(self, batch_channels_outputs: Sequence[int], source: Sequence[int], target: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int], depth: int, by_block: bool) -> None: ...

    @staticmethod
    def streamed_convolution(shape: NativeKernel.ConvolutionShape, has_bias: bool, has_addend: bool, low: float, high: float) -> NativeKernel:
        """
        Make a convolution that streams weights packed by block or by chunk; needs AVX-512. Operands: source, weights[, bias][, addend], target.
        """

    @staticmethod
    def scale(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> NativeKernel:
        """
        Make a product of elements and scales. Operands: source, scales, target; strides in bytes, 0 where a scale repeats. The innermost axis is dense.
        """

    @staticmethod
    def depthwise(batch_channels: Sequence[int], sizes: Sequence[Sequence[int]], strides: tuple[Sequence[int], Sequence[int]], swishes: tuple[bool, bool], limits: tuple[float, float], has_means: bool) -> NativeKernel:
        """
        Make a depthwise convolution. Operands: source, weights, bias, target[, means], scratch. `sizes`: source, target, kernel, strides, dilations, pads. `strides`: of source and target in elements, for image, row, pixel, 16 channels. `swishes`: whether a Swish comes before and after; `limits` clamp results without one.
        """

    @staticmethod
    def plane_convolution(counts: Sequence[int], sizes: Sequence[Sequence[int]], swishes: bool, limits: tuple[float, float]) -> NativeKernel:
        """
        Make a depthwise convolution of row-major images. Operands: source, weights, bias, target. `counts`: images, channels, results of a channel. `sizes`: source, target, kernel, strides, dilations, pads. `swishes`: whether results are a Swish; `limits` clamp results without one. Raises ValueError if 16 results read more than 4,096 elements.
        """

    @staticmethod
    def quantized_rows(lengths: Sequence[int], result: tuple[float, float], adds: bool, product: tuple[float, float], numbers: Sequence[float], is_addend_signed: bool) -> NativeKernel:
        """
        Make a product of rows of uint8 by int8 weights, rounded to 8 bits. Operands: source, weights, factors, terms, addend if it `adds`, target. `lengths`: rows, depth, columns. `result` and `product` clamp the result, and before an addition the product; `numbers`: factors of product and addend, and a shift. Raises ValueError unless columns are a multiple of 64 and the depth is one of 4.
        """

    @staticmethod
    def winograd(batch_channels_outputs: Sequence[int], sizes: Sequence[Sequence[int]], strides: tuple[Sequence[int], Sequence[int]], at_once: Sequence[int], swishes: bool, limits: tuple[float, float], has_bias: bool, has_addend: bool, lanes: int = 16) -> NativeKernel:
        """
        Make a convolution of 3x3 by Winograd's algorithm. Operands: source, weights[, bias][, addend], target, scratch. `sizes`: source, target, pads before. `strides`: of source and target in elements, for image, row, pixel, 16 channels. `at_once`: most tiles, and channels of weights, that are transformed at once. `swishes`: whether results are a Swish; `limits` clamp results without one. `lanes`: most floats of a vector, for tests.
        """

    class BlockFormat:
        """
        Encoding of a matrix whose rows are blocks of `bits` (2, 4 or 8) an element, low bits first. `scale`: float32 or float16; `zeros`: middle, packed or floats (as the scales). `strides` in bytes, from row to row and block to block: of quants, scales, zero points; 0 from block to block of scales if the blocks of a row have one scale and one zero point.
        """

        def __init__(self, bits: int, block: int, is_signed: bool, scale: str, zeros: str, strides: Sequence[int]) -> None: ...

    @staticmethod
    def block_product(rows_depth_columns: Sequence[int], format: NativeKernel.BlockFormat, has_bias: bool, mode: str, row_strides: tuple[int, int], most: str = 'amx') -> NativeKernel:
        """
        Make a product of rows by a matrix of block-quantized rows, one for each column. Operands: source, quants, scales[, zero points][, bias], target, scratch. `mode`: exact (float32) or int8 (activations rounded by block). `row_strides`: bytes from row to row of source and target. `most`: newest instructions to use, for tests.
        """

    @staticmethod
    def block_gather(node: str, indices: tuple[int, int], table: tuple[int, int], format: NativeKernel.BlockFormat, target_row: int, zeros_if_outside: bool) -> NativeKernel:
        """
        Make a gather of rows as float32. Operands: quants, scales[, zero points], indices, target. `indices`: bytes of one (4 or 8), their number; `table`: rows, elements of a row; `target_row`: bytes from row to row. An index outside selects zeros or is refused before anything is written; a negative one counts from the end.
        """

    @staticmethod
    def encoded_product(rows_depth_columns: Sequence[int], type: str, has_bias: bool, row_strides: tuple[int, int], most: str = 'amx') -> NativeKernel:
        """
        Make a product of rows by a matrix of encoded rows, one for each column, in float32. Operands: source, encoded rows[, bias], target, scratch. `type`: F16, BF16, or blocks as GGUF files have them: Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K. `row_strides` and `most` as for `block_product`.
        """

    @staticmethod
    def encoded_product_int8(rows_depth_columns: Sequence[int], type: str, has_bias: bool, row_strides: tuple[int, int], most: str = 'amx') -> NativeKernel:
        """
        Make a product as `encoded_product` does, with activations rounded to int8 in blocks of the elements that share a scale of the weights: 32, or 16 of Q6_K. `type` must be one of blocks.
        """

    @staticmethod
    def encoded_gather(node: str, indices: tuple[int, int], table: tuple[int, int], type: str, target_row: int) -> NativeKernel:
        """
        Make a gather of encoded rows as float32. Operands: encoded rows, indices, target; arguments as for `encoded_product` and `block_gather`.
        """

    @staticmethod
    def split_product(rows_depth_columns: Sequence[int], has_bias: bool, has_addend: bool, activation: str, low: float, high: float) -> NativeKernel:
        """
        Make a product of float32 matrices from products of bfloat16, three of which make a float32. Operands: source, weights in panels of 64 columns[, bias][, addend], target, scratch. `activation`: clip (to `low` and `high`), gelu_erf, gelu_tanh or swish.
        """

    @staticmethod
    def rotary(node: str, shape: Sequence[int], sizes: Sequence[int], strides: Sequence[Sequence[int]], along: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> NativeKernel:
        """
        Make a rotation of pairs by angles. Operands: source, cosines, sines[, positions], target, of float32. `sizes`: pairs of a row, elements after them, rows of the tables or 0. `strides` around rows; `along` a row: from element to element, pair to pair, within a pair. In bytes.
        """

    class RecurrentRule:
        """Rule of a recurrent layer; `cell` is plain, gru, linear_gru or lstm."""

        def __init__(self, cell: str, activations: Sequence[tuple[str, float, float]], is_reversed: bool, is_coupled: bool, limit: float) -> None:
            """
            Make a rule; `activations` are (name, alpha, beta) of one direction after another.
            """

    @staticmethod
    def recurrent(sizes: Sequence[int], rule: NativeKernel.RecurrentRule, parts: Sequence[str], strides: tuple[Sequence[int], Sequence[int], Sequence[int]], is_narrow: bool = False) -> NativeKernel:
        """
        Make a recurrent layer. Operands: products of the inputs, packed weights of the state, the named parts, scratch. `sizes`: steps, batch, directions, hidden. `strides`: of products, sequence and states, in elements. `is_narrow`: weights are bfloat16, not float32.
        """

    @staticmethod
    def recurrent_gradient(cell: str, sizes: Sequence[int], is_reversed: bool, is_cut: bool, parts: Sequence[str]) -> NativeKernel:
        """
        Make the backward steps of a recurrent layer. Operands: the named parts, scratch. `sizes`: steps, batch, hidden.
        """

    @staticmethod
    def recurrent_weights(cell: str, directions: int, hidden: int) -> NativeKernel:
        """
        Make a packing of weights of the state. Operands: weights, packed weights.
        """

    @staticmethod
    def quantize(dtype: str, shape: Sequence[int], strides: Sequence[Sequence[int]], has_zero: bool) -> NativeKernel:
        """
        Make a QuantizeLinear. Operands: x, scale[, zero point], y of `dtype`; strides in bytes of the four.
        """

    @staticmethod
    def dequantize(dtype: str, shape: Sequence[int], strides: Sequence[Sequence[int]], has_zero: bool) -> NativeKernel:
        """
        Make a DequantizeLinear. Operands: x of `dtype`, scale[, zero point], y; strides in bytes of the four.
        """

    @staticmethod
    def dynamic_quantize(count: int) -> NativeKernel:
        """
        Make a DynamicQuantizeLinear by the range of x. Operands: x, y (uint8), scale, zero point, scratch.
        """

    @staticmethod
    def update(rule: str, elements: Sequence[int], has: Sequence[bool], numbers: Sequence[float]) -> NativeKernel | None:
        """
        Make an optimizer's update. Operands: weight, gradient, optimizer state, step[, rate][, scale], then the results. `elements`: first and number of those updated, number of all. `has`: a rate, a scale. `numbers`: rate, two of the rule's, epsilon, decay.
        """

    @staticmethod
    def squares_added(count: int, has_total: bool) -> NativeKernel:
        """
        Make a sum of squares. Operands: numbers[, total], the total plus their squares.
        """

    @staticmethod
    def clip_scale(limit: float, name: str) -> NativeKernel:
        """
        Make a clipping factor. Operands: total of squares, the factor that clips its root to `limit`, the root.
        """

    @staticmethod
    def dropout(count: int, numbers: Sequence[float], stream: int, has_mask: bool) -> NativeKernel:
        """
        Make a Dropout. Operands: numbers, seed and step, result[, mask]. `numbers`: ratio, scale.
        """

    @staticmethod
    def batch_normalization(image: Sequence[int], epsilon: float) -> NativeKernel:
        """
        Make a BatchNormalization in training mode. Operands: image as (outer, channels, inner), scale, bias, result, mean, variance.
        """

    @staticmethod
    def batch_normalization_gradient(image: Sequence[int], epsilon: float, is_given: bool) -> NativeKernel:
        """
        Make the gradient of a batch normalization. Operands: the result's gradient, image, scale, mean, variance, gradients of image, scale and bias.
        """

    @staticmethod
    def largest_gradient(images: Sequence[int], window: Sequence[Sequence[int]], is_last: bool) -> NativeKernel:
        """
        Make the gradient of a MaxPool. Operands: the result's gradient, image, its gradient. `images`: count, channels. `window`: source, target, kernel, strides, dilations, padding before.
        """

    @staticmethod
    def cross_entropy_gradient(scores: Sequence[int], has: Sequence[bool], ignored: int, name: str) -> NativeKernel:
        """
        Make the gradient of a cross entropy. Operands: the loss's gradient, logarithms of probabilities, labels[, weights of classes], the scores' gradient. `has`: a mean, an ignored label, weights.
        """

    @staticmethod
    def gather_gradient(shape: Sequence[int], part: Sequence[int], count: int, is_wide: bool, name: str) -> NativeKernel:
        """
        Make the gradient of a Gather. Operands: gradient, indices of 32 or 64 bits, result of `shape` (before, along, after). `part`: first index and length of the part of that axis that the result has.
        """

class RecipeError(ValueError):
    pass

def record_recipes(wanted: bool) -> bool:
    """
    Set whether the thread records recipes of objects that it makes; return the previous setting.
    """

def kernel_cpu() -> str:
    """
    Return the instruction sets of this processor that native kernels use, such as `avx512`.
    """

def block_level() -> str:
    """
    Return the newest instructions that block products use on this processor: portable, avx2, avx512, vnni or amx.
    """

def multiplies_tiles() -> bool:
    """
    Whether this processor multiplies tiles of bfloat16 (AMX) and the system permits it.
    """

def suppression_bytes(boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 4), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], most: int) -> tuple[int, int]:
    """Return the bytes of rows and of scratch that `suppress` needs."""

def roi_align(image: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], regions: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], owners: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')], samples: int, scale: float, is_half_pixel: bool, is_largest: bool, threads: int = 1) -> None:
    """
    Sample regions of images to one size; `samples` along an axis of a cell, 0 for one a pixel.
    """

def suppress(boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 4), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], most: int, overlap: float, least: float | None, is_centred: bool, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], scratch: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write rows (image, class, box) of non-maximum suppression to bytes; return their number.
    """

class NativeProgram:
    """Program of kernels and primitives over planned bytes."""

    def __init__(self) -> None: ...

    def add_primitive(self, desc: PrimitiveDesc, arguments: Sequence[tuple[int, MemoryDesc, tuple[int, int]]]) -> None:
        """Add a primitive; arguments are (number, layout, place)."""

    def add_kernel(self, kernel: NativeKernel, operands: Sequence[tuple[int, int]]) -> None: ...

    def add_body(self) -> NativeProgram:
        """Add a program for the next control step, and return it."""

    def add_control(self, bound: Sequence[Sequence[tuple[int, int]]], states: Sequence[tuple[int, int, int, int, int, int]], parts: tuple[Sequence[tuple[int, int, int, int, int, int, int, int]], Sequence[tuple[int, int, int, int, int, int, int, int]]], kept: Sequence[tuple[int, int, int]], numbers: tuple[int, int, int, int, int, int, int, bool], operands: Sequence[tuple[int, int]]) -> None:
        """
        Add a step that runs the bodies added last, as `ControlWork` describes it; the last
        operand is its scratch.

        Args:
            bound: Pairs of slot and operand, for each body.
            states: Rows of `CarriedState`.
            parts: Rows of `Slices` that are read, and that are written.
            kept: Rows of `KeptValue`.
            numbers: Fields of `Iterations` from `most` on.
            operands: Space and offset of each operand.
        """

    def compile(self, threads: int) -> None: ...

    def defer(self, threads: int) -> None:
        """Let each run obtain its primitives, instead of `compile`."""

    def bind_weights(self, address: int) -> None: ...

    @property
    def step_count(self) -> int: ...

class NativeStepGraph:
    """
    Dependencies between native steps, with the state of one run at a time.
    """

    def __init__(self, first: int, last: int, edges: Sequence[tuple[int, int]], order: Sequence[int] = []) -> None:
        """
        Steps [first, last) with edges between them; of those that are ready, the first in
        `order`, which counts from 0, goes first.
        """

class FixedOperands:
    """Addresses of arrays that are the same in many runs, by slot."""

    def __init__(self, arrays: dict[int, Any]) -> None:
        """Note C-contiguous arrays, which the caller keeps while they are bound."""

class NativeContext:
    """Program bound to one arena."""

    def __init__(self, program: NativeProgram, arena_address: int) -> None: ...

    def bind_external(self, slot: int, array: object) -> None:
        """
        Bind a slot to a C-contiguous array, which the caller keeps until the run is over.
        """

    def bind_fixed(self, fixed: FixedOperands | None) -> None:
        """
        Bind slots to arrays that stay where they are, unless the last call did; None forgets
        which these were.
        """

    def run(self, steps: tuple[int, int], stop: StopFlag, deadline_ns: int | None = None, ends_ns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> str:
        """
        Run steps [first, last), without the GIL unless they took less than 20 us the last time; return "done", "stopped" or "deadline".
        """

    def run_at_once(self, steps: NativeStepGraph, workers: int, stop: StopFlag, deadline_ns: int | None = None) -> str:
        """
        Run steps concurrently, each once those that it waits for have ended; otherwise like `run`.
        """

class SizedOperator:
    """Operator on arrays whose shapes only the run knows."""

    @staticmethod
    def of(name: str, integers: Sequence[int] = ..., numbers: Sequence[float] = ...) -> SizedOperator | None:
        """Make an operator by its name and settings; None if there is none."""

    @staticmethod
    def choice(otherwise: tuple[SizedProgram, Sequence[int], Sequence[int], Sequence[tuple[int, object]]], then: tuple[SizedProgram, Sequence[int], Sequence[int], Sequence[tuple[int, object]]], is_then_first: bool) -> SizedOperator:
        """
        Make a choice by a condition, the first operand. Branches are programs, the values of their
        captures, which are the further operands, of their results, and of their constants with arrays.
        The captures of the then branch come first or last.
        """

def element_type(name: str) -> int:
    """Return the number of an element type in settings; -1 for none."""

class SizedProgram:
    """Steps over numbered values, some of whose shapes only the run knows."""

    def __init__(self) -> None: ...

    def add(self, computes: SizedOperator | None, reads: Sequence[int], writes: Sequence[int], dying: Sequence[int]) -> None:
        """
        Add a step of an operator, or of none if the caller runs it; -1 is an operand left out.
        """

    def reserve(self, values: int) -> None:
        """Make room for values that no step reads or writes."""

    def add_planned(self, first: int, last: int) -> None:
        """Add a step that runs planned steps [first, last)."""

class SizedContext:
    """Values of one run at a time of a sized program."""

    def __init__(self, program: SizedProgram, planned: NativeContext | None) -> None: ...

    def bind(self, value: int, array: object) -> None:
        """
        Give a value planned bytes: those of a C-contiguous array, which the caller keeps.
        """

    def set(self, value: int, array: object) -> bool:
        """
        Give a value an array, which is kept until its last reader has run; return whether it
        is a C-contiguous one of numbers.
        """

    def get(self, value: int) -> object:
        """Return a value that is not planned; None if no step has computed it."""

    def release(self, step: int) -> None:
        """Drop the values that no step after this one reads."""

    def clear(self) -> None:
        """Drop all values that are not planned."""

    def run(self, steps: tuple[int, int], runs_planned: bool, stop: StopFlag, deadline_ns: int | None, memory: DynamicMemory | None, threads: int) -> tuple[int, str]:
        """
        Run steps [first, last) without the GIL, up to one that the caller has to run; return
        its place, or `last`, and "done", "stopped" or "deadline".
        """

class ArenaClaim:
    """Use of an arena's memory by one run at a time."""

    def __init__(self) -> None: ...

    def take(self) -> bool:
        """Return whether nothing else had it."""

    def give(self) -> None: ...

    @property
    def is_taken(self) -> bool: ...

    @property
    def used_ns(self) -> int:
        """Time of `time.monotonic_ns` after the last run of `TokenSteps`."""

    @property
    def used_bytes(self) -> int:
        """Bytes that this run needed."""

class SessionState:
    """State of a session that each of its steps changes."""

    def __init__(self) -> None: ...

    def begin(self) -> bool:
        """
        Begin a use, after which no token is ready; return False if there is one already.
        """

    def end(self) -> None:
        """End a use."""

    @property
    def is_of_this_process(self) -> bool: ...

    @property
    def length(self) -> int:
        """Tokens that there are."""

    @length.setter
    def length(self, arg: int, /) -> None: ...

    @property
    def uses(self) -> int:
        """Uses so far, without those that no caller began."""

    @uses.setter
    def uses(self, arg: int, /) -> None: ...

    @property
    def used_ns(self) -> int:
        """Time of `time.monotonic_ns` at which the last use ended."""

    @property
    def ready(self) -> int:
        """Tokens up to which a step of one needs no preparation."""

    @property
    def keeps_tokens(self) -> bool:
        """Whether tokens of `TokenSteps` are noted for `take_written`."""

    @keeps_tokens.setter
    def keeps_tokens(self, arg: bool, /) -> None: ...

    def make_ready(self, ready: int, fixed: FixedOperands, token: object, past: object, is_wide: bool) -> None:
        """
        Let `TokenSteps` append tokens until the next use begins.

        Args:
            ready: Tokens up to which rows of the caches may be written.
            fixed: Operands but the logits; their arrays stay until the next use.
            token: One of these arrays, of the token.
            past: Array of the number of tokens before.
            is_wide: Whether the token has 64 bits, not 32.
        """

    def take_written(self) -> list[int]:
        """Return the tokens that were noted since the last call."""

class TokenSteps:
    """Steps of one token in one call each, where all is prepared for it."""

    def __init__(self, count: int, logits: int, make: object) -> None:
        """
        Refer to a program.

        Args:
            count: Native steps of the program, which has no others.
            logits: Slot of its only result.
            make: Returns an array for that.
        """

    def add(self, context: object, range: object, claim: object, needed_bytes: int) -> None:
        """
        Use an arena from now on, unless it is used already; those whose memory was given back
        are forgotten.
        """

    def clear(self) -> None:
        """Use no arena any more."""

    @property
    def arena_count(self) -> int: ...

    def step(self, state: SessionState, tokens: object, stop: object) -> Any:
        """
        Append a token, as a list or an array of one, and return its logits.

        Returns None, changing nothing, if it cannot: the tokens are others, their row or an arena is
        not ready, or the session is in use. Returns "stopped", or raises what the run raised, with the
        use of the session not ended
        and nothing ready.
        """

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

    def transfer(self, received_bytes: int, sent_bytes: int) -> None:
        """Count the messages of a successful request, beside `succeed`."""

    def histograms(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """
        Return counts by bucket, and the sum, of the time in the queue, the time of computing, the bytes of requests and those of responses; the last bucket has no bound.
        """

    @staticmethod
    def bounds() -> tuple[tuple[int, ...], tuple[int, ...]]:
        """
        Return the upper bounds of the buckets, of durations in nanoseconds and of sizes.
        """

    def now(self) -> tuple[int, int, int, int, tuple[int, int, int, int], int]:
        """
        Return successes, failures, waiting requests, duration of failures, durations of the four phases of successes, and the end of the last success in ms since 1970.
        """

class PrimitiveCacheStatistics:
    """Counters; hits + waits + misses are the calls of `obtain`."""

    @property
    def hits(self) -> int: ...

    @property
    def waits(self) -> int:
        """Calls that waited for another thread to compile the primitive."""

    @property
    def misses(self) -> int:
        """Calls that compiled the primitive."""

    @property
    def failures(self) -> int:
        """Misses whose compilation failed."""

    @property
    def evictions(self) -> int: ...

    @property
    def entries(self) -> int:
        """Primitives held now."""

    @property
    def bytes(self) -> int:
        """Estimated bytes of the entries."""

    @property
    def idle_entries(self) -> int:
        """Primitives held but not used."""

    @property
    def idle_bytes(self) -> int:
        """Estimated bytes of unused primitives."""

    def __repr__(self) -> str: ...

class LifetimeManager:
    """Lifetimes of the temporaries of a primitive."""

    def start_lifetime(self) -> int:
        """Start the lifetime of a new object; return its number."""

    def end_lifetime(self, object: int, size_bytes: int, alignment: int = 64) -> None:
        """End the lifetime of an object; raises InputError unless it is alive."""

    @property
    def are_all_finalized(self) -> bool: ...

    @property
    def size_bytes(self) -> int:
        """Bytes of a pool for all objects; raises InputError while one is alive."""

class BlobLifetimeManager(LifetimeManager):
    """Lifetimes placed in as few regions as objects are alive at once."""

    def __init__(self) -> None: ...

class OffsetLifetimeManager(LifetimeManager):
    """Lifetimes placed at planned offsets of one region."""

    def __init__(self) -> None: ...

class PoolStatistics:
    """Counts and bytes of free and reserved pools."""

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
        """Most bytes of free and reserved pools together."""

    @property
    def created(self) -> int: ...

    @property
    def reused(self) -> int: ...

    @property
    def trimmed(self) -> int:
        """Free pools that were given back."""

    def __repr__(self) -> str: ...

class PoolManager:
    """Manager of pools of temporaries, each free or reserved."""

    def __init__(self, budget_bytes: int) -> None:
        """
        Make a manager whose free pools hold at most `budget_bytes`; 0 gives them back at once.
        """

    def __del__(self) -> None: ...

    @property
    def budget_bytes(self) -> int: ...

    @budget_bytes.setter
    def budget_bytes(self, arg: int, /) -> None: ...

    def trim(self, budget_bytes: int = 0) -> int:
        """
        Give free pools back until they hold at most `budget_bytes`; return the bytes given back.
        """

    def statistics(self) -> PoolStatistics: ...

class PrimitiveResource:
    """Memory of one run of a primitive."""

    @property
    def is_held(self) -> bool: ...

    @property
    def identity(self) -> int: ...

    def address(self, object: int = 0) -> int:
        """Return the address of an object; raises InputError if it is unknown."""

class MemoryManager:
    """Gives each run of a primitive the memory of its temporaries."""

    def __init__(self, lifetimes: LifetimeManager, pools: PoolManager, *, is_cached: bool = True) -> None:
        """
        Make a manager; unless `is_cached`, a run's pool is given back when the run ends.
        """

    def __del__(self) -> None: ...

    def populate(self, resource: MemoryResource, count: int) -> None:
        """
        Make free pools for `count` runs, as far as the budget allows; all of these or none.
        """

    def clear(self) -> None:
        """Give every pool back; raises InputError while one is reserved."""

    def reserve_pools(self, resource: MemoryResource, count: int) -> None:
        """
        Reserve `count` further pools for this primitive; raises OutOfMemoryError and reserves none if one is refused.
        """

    def unreserve_pools(self, count: int) -> None:
        """
        Return `count` reserved pools; raises InputError and returns none if fewer are reserved.
        """

    @property
    def reserved_count(self) -> int:
        """Pools that are reserved and not in use."""

    def create_resource(self, resource: MemoryResource) -> PrimitiveResource:
        """Take a pool for one run."""

    def destroy_resource(self, held: PrimitiveResource) -> None:
        """End a run; raises InputError if the resource is another manager's."""

class CachedPrimitive:
    """Counted reference to a compiled primitive."""

    @property
    def size_bytes(self) -> int:
        """Estimated bytes of its code and description."""

    @property
    def scratch_bytes(self) -> int: ...

    @property
    def memory(self) -> MemoryManager:
        """Manager of its scratch, which is object 0."""

    def is_same(self, other: CachedPrimitive) -> bool:
        """Whether both are one compiled primitive."""

class PrimitiveCache:
    """Cache of compiled primitives."""

    def __init__(self, entries: int, idle_bytes: int | str, pools: PoolManager, *, is_cached: bool = True) -> None:
        """
        Make a cache; `pools` and `is_cached` configure the primitives' memory managers.
        """

    def obtain(self, desc: PrimitiveDesc, threads: int = 1) -> CachedPrimitive:
        """
        Return the primitive of a description made for `threads`, compiled if needed.
        """

    @property
    def entries(self) -> int:
        """Most primitives that it holds; 0 for none."""

    @property
    def idle_bytes(self) -> int:
        """Most bytes of unused primitives."""

    def set_capacity(self, entries: int, idle_bytes: int | str) -> None:
        """Set both limits; primitives beyond them are released at once."""

    def release_idle(self) -> int:
        """Release unused primitives; return their estimated bytes."""

    @property
    def pools(self) -> PoolManager: ...

    def statistics(self) -> PrimitiveCacheStatistics: ...

def primitive_cache() -> PrimitiveCache:
    """Return the cache that all programs of the process share."""

class NativeStepwise:
    """Deferred program that obtains primitives and memory for each call."""

    def __init__(self, program: NativeProgram, cache: PrimitiveCache, resource: MemoryResource, groups: Sequence[tuple[int, int, LifetimeManager, Sequence[int]]], scratch_slot: int) -> None:
        """
        Make a run; a group is first and last step, lifetimes, and the slot of each object.
        """

    def bind_external(self, slot: int, array: object) -> None:
        """
        Bind a slot to a C-contiguous array, which the caller keeps until the run is over.
        """

    def bind_persistent(self, slot: int, array: object) -> None:
        """Bind a slot to an array that primitives own, and keep the array alive."""

    def run(self, stop: StopFlag, deadline_ns: int | None = None) -> str:
        """
        Run every step without the GIL; return "done", "stopped" or "deadline".
        """

    @property
    def memory_ns(self) -> int:
        """Time of the last run spent obtaining memory and giving it back."""

    @property
    def primitives_ns(self) -> int:
        """Time of the last run spent finding or compiling primitives."""

def version() -> str:
    """Return the version of the package."""

def expect_leaks() -> None:
    """Keep the end of the process from listing objects that are still alive."""
