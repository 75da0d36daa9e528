"""Answers of a CUDA driver to calls of virtual memory, right and wrong ones, as numbers."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref

Word = ctypes.c_uint64


class _Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("meta_data", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
    ]


class _Access(ctypes.Structure):
    _fields_ = [
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("flags", ctypes.c_int),
    ]


PINNED = _Properties(1, 0, 1, 0, None, 0)
READ_AND_WRITE = _Access(1, 0, 3)


class Calls:
    """Calls of a driver, whose results are kept in `results`; undone by `close`."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.results: list[int] = []
        self._reserved: list[tuple[int, int]] = []
        self._handles: list[int] = []
        self._mapped: list[tuple[int, int]] = []
        self._context = ctypes.c_void_p()
        bytes_ = ctypes.c_size_t()
        for name, arguments in (
            ("cuInit", (0,)),
            ("cuDevicePrimaryCtxRetain", (byref(self._context), 0)),
            ("cuMemGetAllocationGranularity", (byref(bytes_), byref(PINNED), 0)),
        ):
            assert self.library[name](*arguments) == 0, name
        self.page = bytes_.value

    @contextmanager
    def context(self):
        assert self.library.cuCtxPushCurrent_v2(self._context) == 0
        yield
        assert self.library.cuCtxPopCurrent_v2(byref(ctypes.c_void_p())) == 0

    def note(self, name: str, *arguments: object) -> int:
        self.results.append(int(self.library[name](*arguments)))
        return self.results[-1]

    def reserve(self, pages: float, alignment: int = 0, wanted: int = 0) -> int:
        start, size = Word(), int(pages * self.page)
        asked = (byref(start), Word(size), Word(alignment), Word(wanted), Word())
        if self.note("cuMemAddressReserve", *asked) == 0:
            self._reserved.append((start.value, size))
        return start.value

    def create(self, pages: float = 1) -> int:
        handle = Word()
        asked = (byref(handle), Word(int(pages * self.page)), byref(PINNED), Word())
        if self.note("cuMemCreate", *asked) == 0:
            self._handles.append(handle.value)
        return handle.value

    def map(self, start: int, handle: int, pages: float = 1, offset: float = 0) -> None:
        size = int(pages * self.page)
        asked = (Word(start), Word(size), Word(int(offset * self.page)), Word(handle), Word())
        if self.note("cuMemMap", *asked) == 0:
            self._mapped.append((start, size))

    def unmap(self, start: int, pages: float = 1) -> None:
        stop = start + int(pages * self.page)
        if self.note("cuMemUnmap", Word(start), Word(stop - start)) == 0:
            self._mapped = [each for each in self._mapped if not start <= each[0] < stop]

    def allow(self, start: int, pages: float = 1) -> None:
        size = Word(int(pages * self.page))
        self.note("cuMemSetAccess", Word(start), size, byref(READ_AND_WRITE), Word(1))

    def release(self, handle: int) -> None:
        if self.note("cuMemRelease", Word(handle)) == 0 and handle in self._handles:
            self._handles.remove(handle)

    def free(self, start: int, pages: float) -> None:
        size = int(pages * self.page)
        if self.note("cuMemAddressFree", Word(start), Word(size)) == 0:
            self._reserved = [each for each in self._reserved if each != (start, size)]

    def pair(self) -> int:
        """Two reservations next to each other, each of a mapped page; the start of the first."""
        start = self.reserve(2)
        self.free(start, 2)
        first, second = self.reserve(1, wanted=start), self.reserve(1, wanted=start + self.page)
        assert (first, second) == (start, start + self.page)
        for at in (first, second):
            self.map(at, self.create())
        return first

    def row(self, count: int = 2) -> int:
        """Reserve addresses of `count` pages, each of which is mapped."""
        start = self.reserve(count)
        for index in range(count):
            self.map(start + index * self.page, self.create())
        return start

    def close(self) -> None:
        with self.context():
            for start, size in self._mapped:
                self.library.cuMemUnmap(Word(start), Word(size))
            for handle in self._handles:
                self.library.cuMemRelease(Word(handle))
            for start, size in self._reserved:
                self.library.cuMemAddressFree(Word(start), Word(size))
        self.library.cuDevicePrimaryCtxRelease_v2(0)


def sizes_reserved(calls: Calls) -> None:
    for pages in (0, 0.5, 1.5, 1):
        calls.reserve(pages)


def aligned(calls: Calls) -> None:
    start = calls.reserve(1, alignment=64 * calls.page)
    calls.results.append(start % (64 * calls.page))


def grown(calls: Calls) -> None:
    start = calls.reserve(2)
    calls.free(start, 2)
    first = calls.reserve(1, wanted=start)
    second = calls.reserve(1, wanted=start + calls.page)
    third = calls.reserve(1, wanted=start)
    calls.results += [first == start, second == start + calls.page, third == start]


def sizes_created(calls: Calls) -> None:
    for pages in (0, 0.5, 1.5, 3, 1 << 40):
        calls.create(pages)


def mapped_wrongly(calls: Calls) -> None:
    start, chunk = calls.reserve(4), calls.create(2)
    calls.map(start, chunk, 1)
    calls.map(start, chunk, 1, 1)
    calls.map(start + calls.page // 2, chunk, 2)
    calls.map(start + 3 * calls.page, chunk, 2)
    calls.map(start + (1 << 44), chunk, 2)


def mapped_twice(calls: Calls) -> None:
    start, chunk = calls.reserve(4), calls.create()
    calls.map(start, chunk)
    calls.map(start, chunk)
    calls.map(start, calls.create())
    calls.map(start + calls.page, chunk)


def mapped_over_two_reservations(calls: Calls) -> None:
    start = calls.reserve(2)
    calls.free(start, 2)
    calls.reserve(1, wanted=start)
    calls.reserve(1, wanted=start + calls.page)
    calls.map(start, calls.create(2), 2)


def accessed(calls: Calls) -> None:
    start = calls.reserve(4)
    calls.allow(start)
    calls.map(start, calls.create())
    calls.map(start + calls.page, calls.create())
    calls.allow(start, 3)
    calls.allow(start, 0.5)
    calls.allow(start, 2)
    calls.allow(start, 2)


def accessed_in_part(calls: Calls) -> None:
    start = calls.reserve(2)
    calls.map(start, calls.create(2), 2)
    calls.allow(start, 1)
    calls.allow(start + calls.page, 1)


def accessed_over_two_reservations(calls: Calls) -> None:
    calls.allow(calls.pair(), 2)


def unmapped_wrongly(calls: Calls) -> None:
    start = calls.reserve(4)
    calls.unmap(start)
    calls.map(start, calls.create(2), 2)
    calls.unmap(start, 1)
    calls.unmap(start + calls.page, 1)
    calls.unmap(start, 3)
    calls.unmap(start, 2)
    calls.unmap(start, 2)


def unmapped_together(calls: Calls) -> None:
    calls.unmap(calls.row(), 2)


def unmapped_together_over_two_reservations(calls: Calls) -> None:
    calls.unmap(calls.pair(), 2)


def mapped_again(calls: Calls) -> None:
    start, chunk = calls.reserve(1), calls.create()
    for _ in range(2):
        calls.map(start, chunk)
        calls.allow(start)
        calls.unmap(start)


def freed_wrongly(calls: Calls) -> None:
    start = calls.reserve(4)
    calls.free(start, 2)
    calls.free(start + calls.page, 3)
    calls.map(start, calls.create())
    calls.free(start, 4)
    calls.unmap(start)
    calls.free(start, 4)
    calls.free(start, 4)


def released_while_mapped(calls: Calls) -> None:
    start, chunk = calls.reserve(1), calls.create()
    calls.map(start, chunk)
    calls.allow(start)
    calls.release(chunk)
    calls.unmap(start)


def events(calls: Calls) -> None:
    event = ctypes.c_void_p()
    calls.note("cuEventCreate", byref(event), 2)
    calls.note("cuEventQuery", event)
    calls.note("cuStreamWaitEvent", None, event, 0)
    calls.note("cuEventRecord", event, None)
    calls.note("cuStreamSynchronize", None)
    calls.note("cuEventQuery", event)
    calls.note("cuEventDestroy_v2", event)


SCENARIOS: tuple[Callable[[Calls], None], ...] = (
    sizes_reserved, aligned, grown, sizes_created, mapped_wrongly, mapped_twice,
    mapped_over_two_reservations, accessed, accessed_in_part, accessed_over_two_reservations,
    unmapped_wrongly, unmapped_together, unmapped_together_over_two_reservations, mapped_again,
    freed_wrongly, released_while_mapped, events,
)  # fmt: skip


def without_context(calls: Calls) -> None:
    """Calls that no context is current for."""
    start, chunk = calls.reserve(1), calls.create()
    calls.map(start, chunk)
    calls.allow(start)
    calls.unmap(start)
    calls.release(chunk)
    calls.free(start, 1)
    calls.note("cuEventCreate", byref(ctypes.c_void_p()), 2)
    calls.note("cuStreamSynchronize", None)
    calls.note("cuCtxPopCurrent_v2", byref(ctypes.c_void_p()))


def answers(path: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the name and the results of each scenario with the driver in `path`."""
    for scenario in (*SCENARIOS, without_context):
        calls = Calls(path)
        if scenario is without_context:
            scenario(calls)
        else:
            with calls.context():
                scenario(calls)
        calls.close()
        yield scenario.__name__, [int(result) for result in calls.results]
