#include "bind.hpp"
#include "count.hpp"
#include "fields.hpp"
#include "long_call.hpp"
#include "python_device.hpp"
#include "traverse.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/resource/virtual/chunked_resource.hpp"
#include "tightship/resource/virtual/failing_device.hpp"
#include "tightship/resource/virtual/growing_resource.hpp"
#include "tightship/resource/virtual/host_device.hpp"
#include "tightship/resource/virtual/shared_device.hpp"
#include "tightship/resource/virtual/stealing_resource.hpp"

#include <algorithm>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::ChunkedVirtualResource;
using resource::FailingDevice;
using resource::GrowingVirtualResource;
using resource::HostDevice;
using resource::MemoryResource;
using resource::PagedDevice;
using resource::SharedDevice;
using resource::StealingVirtualResource;
using resource::Stream;
using resource::VirtualResource;
using resource::VirtualStatistics;

using Device = std::shared_ptr<PagedDevice>;

int traverse_python_device(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *device = owned_by<PythonDevice>(self);
    return device != nullptr ? device->traverse(visit, arg) : 0;
}

int traverse_failing_device(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *failing = owned_by<FailingDevice>(self);
    return failing != nullptr ? visit_device(failing->device(), visit, arg) : 0;
}

void collect_failing_device(nb::handle self) {
    if (const auto *failing = owned_by<FailingDevice>(self.ptr()))
        collect_device(failing->device());
}

int traverse_python_stream(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *stream = owned_by<PythonStream>(self);
    return stream != nullptr ? stream->traverse(visit, arg) : 0;
}

void collect_python_stream(nb::handle self) {
    if (auto *stream = owned_by<PythonStream>(self.ptr()))
        stream->collect();
}

/// Shows the garbage collector the device, and the streams whose work may use freed memory.
int traverse_virtual(PyObject *self, visitproc visit, void *arg) {
    if (const int stopped = traverse_resource(self, visit, arg))
        return stopped;
    const auto *resource = owned_by<VirtualResource>(self);
    if (resource == nullptr)
        return 0;
    int stopped = visit_device(resource->device(), visit, arg);
    resource->each_stream([&](Stream *stream) {
        stopped = stopped != 0 ? stopped : visit_object_of(stream, visit, arg);
    });
    return stopped;
}

void collect_virtual(nb::handle self) {
    if (const auto *resource = owned_by<VirtualResource>(self.ptr()))
        collect_device(resource->device());
}

PyType_Slot python_device_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverse_python_device)}, {0, nullptr}};
PyType_Slot failing_device_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverse_failing_device)}, {0, nullptr}};
PyType_Slot python_stream_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverse_python_stream)}, {0, nullptr}};
PyType_Slot virtual_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_virtual)},
                               {0, nullptr}};

void devices(nb::module_ &module) {
    nb::class_<PagedDevice>(module, "PagedDevice",
                            "Physical chunks and addresses of a device, and mappings between them.")
        .def_prop_ro("granularity_bytes", &PagedDevice::granularity_bytes,
                     "Bytes that sizes of chunks are multiples of.");
    nb::class_<HostDevice, PagedDevice>(
        module, "HostDevice", "Private pages, moved from address to address without a copy.")
        .def(nb::init<>());
    nb::class_<SharedDevice, PagedDevice>(module, "SharedDevice",
                                          "Pages of a file in memory that other processes can map.")
        .def(nb::init<>())
        .def_prop_ro("descriptor", &SharedDevice::descriptor, "Number of the open file.");
    nb::class_<FailingDevice, PagedDevice>(module, "FailingDevice",
                                           nb::type_slots(failing_device_slots),
                                           "Refuses chosen calls, to test how callers cope.")
        .def("__del__", collect_failing_device, nb::sig(kCollectedSignature))
        .def(
            "__init__",
            [](FailingDevice *self, Device device, Count first, Count count) {
                new (self) FailingDevice(own_device(device), at_least(0, "first", first),
                                         at_least(0, "count", count));
            },
            "device"_a, "first"_a, "count"_a = 1,
            "Refuse `count` calls to create, reserve, map, unmap or grow, from number `first` on.")
        .def_prop_ro("call_count", &FailingDevice::call_count, "Number of such calls so far.");
    nb::class_<PythonDevice, PagedDevice>(module, "PythonDevice",
                                          nb::type_slots(python_device_slots),
                                          "Device made of two Python functions.")
        .def(
            "__init__",
            [](PythonDevice *self, nb::callable create_physical, nb::callable create_virtual,
               Count granularity, bool maps_twice) {
                new (self) PythonDevice(std::move(create_physical), std::move(create_virtual),
                                        power_of_two("granularity_bytes", granularity), maps_twice);
            },
            "create_physical_memory"_a, "create_virtual_memory"_a, nb::kw_only(),
            "granularity_bytes"_a = 4096, "maps_twice"_a = false,
            nb::sig("def __init__(self, create_physical_memory: "
                    "collections.abc.Callable[[int], object], create_virtual_memory: "
                    "collections.abc.Callable[[int, int], object], *, "
                    "granularity_bytes: int = 4096, maps_twice: bool = False) -> None"),
            "Call `create_physical_memory(size_bytes)` for a chunk, any object, "
            "and\n`create_virtual_memory(size_bytes, alignment)` for an object with `address` and "
            "the\nmethods `map(offset_bytes, chunks)`, `unmap(offset_bytes, chunks)` "
            "and\n`extend(more_bytes)`, true when done. None, false or an exception is a refusal; "
            "an\nobject gives its memory back when it is dropped.");
}

void streams(nb::module_ &module) {
    nb::class_<Stream>(module, "Stream",
                       "Work done in order, concurrently to the thread that submits it.");
    nb::class_<PythonHostStream, Stream>(module, "HostStream",
                                         "Thread that runs functions in the order of submission.")
        .def(nb::init<>())
        .def("submit", &PythonHostStream::submit, "work"_a,
             nb::sig("def submit(self, work: collections.abc.Callable[[], object]) -> None"),
             "Run a function after those submitted before; its exceptions are written to stderr.")
        .def("synchronize", &PythonHostStream::synchronize, nb::call_guard<GilReleased>(),
             "Wait until everything submitted so far is done.");
    nb::class_<PythonStream, Stream>(module, "PythonStream", nb::type_slots(python_stream_slots),
                                     "Stream of work that Python code tracks.")
        .def("__del__", collect_python_stream, nb::sig(kCollectedSignature))
        .def(nb::init<nb::callable>(), "record"_a,
             nb::sig("def __init__(self, record: collections.abc.Callable[[], object]) -> None"),
             "Call `record()` for a fence after all work so far: an object with `is_signalled()`, "
             "or\nNone if all is done.");
}

uintptr_t allocate_on(VirtualResource &self, Amount size, const std::shared_ptr<Stream> &stream,
                      Count alignment) {
    const size_t boundary = power_of_two("alignment", alignment);
    const size_t size_bytes = at_least(0, "size_bytes", size);
    const auto owner = self.known(stream);
    void *pointer =
        call_long(size_bytes, [&] { return self.allocate_on(size_bytes, boundary, owner); });
    if (pointer == nullptr)
        throw resource::Refused(self, size_bytes, boundary);
    return reinterpret_cast<uintptr_t>(pointer);
}

void deallocate_on(VirtualResource &self, uintptr_t address, Amount size,
                   const std::shared_ptr<Stream> &stream, Count alignment) {
    const size_t boundary = power_of_two("alignment", alignment);
    const size_t size_bytes = at_least(0, "size_bytes", size);
    const auto owner = self.known(stream);
    const resource::Freed freed = call_long(size_bytes, [&] {
        return self.deallocate_on(reinterpret_cast<void *>(address), size_bytes, boundary, owner);
    });
    if (freed != resource::Freed::done)
        refuse_block(self, freed, {address, size_bytes, boundary});
}

using ListedRow = std::tuple<uintptr_t, uintptr_t, size_t, size_t, const char *>;
using EventRow = std::tuple<const char *, uintptr_t, size_t, int64_t>;

std::vector<ListedRow> blocks(const VirtualResource &self) {
    static constexpr const char *kNames[] = {"live", "awaiting", "kept", "free"};
    std::vector<ListedRow> rows;
    for (const resource::ListedBlock &block : self.blocks())
        rows.emplace_back(block.segment, block.start, block.size_bytes, block.requested_bytes,
                          kNames[static_cast<size_t>(block.occupancy)]);
    return rows;
}

std::vector<EventRow> events(const VirtualResource &self) {
    static constexpr const char *kNames[] = {"allocated", "freed", "mapped", "unmapped"};
    std::vector<EventRow> rows;
    for (const resource::Event &event : self.events())
        rows.emplace_back(kNames[static_cast<size_t>(event.action)], event.start, event.size_bytes,
                          event.time_ns);
    return rows;
}

void statistics(nb::module_ &module) {
    nb::class_<VirtualStatistics>(
        module, "VirtualStatistics",
        "Counters of a virtual resource; exact while no call is in flight.")
        .def_ro("requested_bytes", &VirtualStatistics::requested_bytes,
                "Requested bytes of live blocks.")
        .def_ro("allocated_bytes", &VirtualStatistics::allocated_bytes,
                "Bytes that live blocks take.")
        .def_ro("peak_allocated_bytes", &VirtualStatistics::peak_allocated_bytes,
                "Maximum of these bytes so far.")
        .def_ro("physical_bytes", &VirtualStatistics::physical_bytes,
                "Bytes of all chunks, live and cached.")
        .def_ro("peak_physical_bytes", &VirtualStatistics::peak_physical_bytes,
                "Maximum of these bytes so far.")
        .def_ro("cached_bytes", &VirtualStatistics::cached_bytes,
                "Bytes of chunks without a live block.")
        .def_ro("address_bytes", &VirtualStatistics::address_bytes, "Bytes of reserved addresses.")
        .def_ro("waiting_count", &VirtualStatistics::waiting_count,
                "Addresses kept for unfinished work.")
        .def_ro("allocation_count", &VirtualStatistics::allocation_count,
                "Allocations since the resource was made.")
        .def_ro("exact_count", &VirtualStatistics::exact_count,
                "Allocations served by memory that was mapped already.")
        .def_ro("remap_count", &VirtualStatistics::remap_count,
                "Allocations for which chunks were mapped elsewhere.")
        .def_ro("created_count", &VirtualStatistics::created_count, "Chunks made.")
        .def_ro("moved_count", &VirtualStatistics::moved_count, "Chunks mapped elsewhere.")
        .def_ro("released_count", &VirtualStatistics::released_count,
                "Chunks given back to the device.")
        .def_ro("retry_count", &VirtualStatistics::retry_count,
                "Requests repeated after caches were given back.")
        .def_ro("wait_count", &VirtualStatistics::wait_count, "Requests that waited for a fence.")
        .def("__repr__", &repr_of_fields);
}

void resources(nb::module_ &module) {
    constexpr size_t alignment = resource::kDefaultAlignment;
    nb::class_<VirtualResource, MemoryResource>(
        module, "VirtualResource",
        "Blocks at addresses that chunks are mapped to, and moved between.")
        .def("allocate_on", &allocate_on, "size_bytes"_a, "stream"_a.none(),
             "alignment"_a = alignment,
             "Allocate as `allocate` does, for use in the order of a stream.")
        .def("deallocate_on", &deallocate_on, "address"_a, "size_bytes"_a, "stream"_a.none(),
             "alignment"_a = alignment,
             "Free as `deallocate` does, while work of the stream may still use the block: it "
             "serves\nthe same stream at once, others when that work is done.")
        .def("virtual_statistics", &VirtualResource::virtual_statistics)
        .def("blocks", &blocks,
             "List blocks that have memory: start of the segment, address, size, requested bytes "
             "(0\nunless live), and `live`, `awaiting` (work may still use it), `kept` (for a "
             "request of\nits size) or `free`.")
        .def(
            "record_events",
            [](VirtualResource &self, Count count) {
                self.record_events(at_least(0, "count", count));
            },
            "count"_a, "Keep the last `count` events from now on; 0, the default, keeps none.")
        .def("events", &events,
             "List events, the oldest first: `allocated`, `freed`, `mapped` or `unmapped`, "
             "address,\nbytes (of a block: the size requested), nanoseconds since 1970.");
    nb::class_<ChunkedVirtualResource, VirtualResource>(
        module, "ChunkedVirtualResource", nb::type_slots(virtual_slots),
        "Virtual caching allocator as published: with caches of chunks and of addresses.")
        .def("__del__", collect_virtual, nb::sig(kCollectedSignature))
        .def(
            "__init__",
            [](ChunkedVirtualResource *self, Device device, Amount chunk) {
                new (self)
                    ChunkedVirtualResource(own_device(device), at_least(1, "chunk_bytes", chunk));
            },
            "device"_a, "chunk_bytes"_a = ChunkedVirtualResource::kChunkBytes)
        .def_prop_ro("chunk_bytes", &ChunkedVirtualResource::chunk_bytes)
        .def(
            "set_chunk_size",
            [](ChunkedVirtualResource &self, Amount chunk) {
                self.set_chunk_bytes(at_least(1, "chunk_bytes", chunk));
            },
            "chunk_bytes"_a,
            "Set the size of chunks made from now on; cached chunks are given back.");
}

std::chrono::nanoseconds nanoseconds(const char *name, double seconds) {
    if (!(seconds >= 0))
        throw resource::Misuse("`" + std::string(name) + "` must be 0 or more.");
    return std::chrono::nanoseconds(static_cast<int64_t>(std::min(seconds, 1e9) * 1e9));
}

void growing_resource(nb::module_ &module) {
    using Settings = StealingVirtualResource::Settings;
    nb::class_<GrowingVirtualResource, VirtualResource>(
        module, "GrowingVirtualResource", nb::type_slots(virtual_slots),
        "Page stealing in pages from 16 KiB, while little is live, to 2 MiB.")
        .def("__del__", collect_virtual, nb::sig(kCollectedSignature))
        .def(
            "__init__",
            [](GrowingVirtualResource *self, const std::shared_ptr<HostDevice> &device,
               std::optional<Amount> max, double idle, double patience) {
                Settings settings{.idle = nanoseconds("idle_s", idle),
                                  .patience = nanoseconds("patience_s", patience)};
                if (max)
                    settings.max_bytes = at_least(1, "max_bytes", *max);
                new (self) GrowingVirtualResource(own_device(device), settings);
            },
            "device"_a, nb::kw_only(), "max_bytes"_a.none() = nb::none(), "idle_s"_a = 10.0,
            "patience_s"_a = 1.0,
            "Map private memory, at most `max_bytes`, in pages of a size that follows what is\n"
            "live. The others as for `StealingVirtualResource`.");
}

void stealing_resource(nb::module_ &module) {
    using Settings = StealingVirtualResource::Settings;
    nb::class_<StealingVirtualResource, VirtualResource>(
        module, "StealingVirtualResource", nb::type_slots(virtual_slots),
        "Blocks of any size from one range of addresses; free pages move to where they are needed.")
        .def("__del__", collect_virtual, nb::sig(kCollectedSignature))
        .def(
            "__init__",
            [](StealingVirtualResource *self, Device device, Amount page, std::optional<Amount> max,
               Amount keep, double idle, double patience, const nb::kwargs &old) {
                for (const auto &[name, value] : old)
                    (current_parameter("StealingVirtualResource", name) == "idle_s" ? idle
                                                                                    : patience) =
                        nb::cast<double>(value);
                Settings settings{.page_bytes = at_least(1, "page_bytes", page),
                                  .keep_bytes = at_least(0, "keep_bytes", keep),
                                  .idle = nanoseconds("idle_s", idle),
                                  .patience = nanoseconds("patience_s", patience)};
                if (max)
                    settings.max_bytes = at_least(1, "max_bytes", *max);
                new (self) StealingVirtualResource(own_device(device), settings);
            },
            "device"_a, nb::kw_only(), "page_bytes"_a = Settings{}.page_bytes,
            "max_bytes"_a.none() = nb::none(), "keep_bytes"_a = Settings{}.keep_bytes,
            "idle_s"_a = 10.0, "patience_s"_a = 1.0, "old"_a,
            nb::sig("def __init__(self, device: PagedDevice, *, page_bytes: int | str = 2097152, "
                    "max_bytes: int | str | None = None, keep_bytes: int | str = 0, "
                    "idle_s: float = 10.0, patience_s: float = 1.0) -> None"),
            "Map memory in pages, at most `max_bytes`. Memory not needed for `idle_s` is given\n"
            "back, except `keep_bytes`. A request waits up to `patience_s` for unfinished work\n"
            "before further memory is made.");
}

} // namespace

void virtual_resources(nb::module_ &module) {
    resource::wait_for_lock = &lock_without_gil;
    module.def(
        "process_mappings", [] { return std::tuple(os::map_count(), os::map_limit()); },
        "Return the number of address ranges that the process has mapped, and the most that "
        "the\nsystem allows; 0 if unknown.");
    devices(module);
    streams(module);
    statistics(module);
    resources(module);
    stealing_resource(module);
    growing_resource(module);
    planned_resource(module);
    cuda_resources(module);
}

} // namespace tightship::bind
