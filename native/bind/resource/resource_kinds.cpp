#include "bind.hpp"
#include "count.hpp"
#include "traverse.hpp"

#include "tightship/os/os.hpp"
#include "tightship/resource/bump.hpp"
#include "tightship/resource/host.hpp"
#include "tightship/resource/region.hpp"
#include "tightship/resource/shared.hpp"
#include "tightship/resource/slab.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::BumpResource;
using resource::FileResource;
using resource::HostResource;
using resource::MemoryResource;
using resource::PageResource;
using resource::SegmentResource;
using resource::SharedResource;
using resource::SlabResource;

using Upstream = std::shared_ptr<MemoryResource>;

/// Memory of a Python object, exported as long as the resource lives.
class RegionOfBuffer final : public resource::RegionResource {
  public:
    RegionOfBuffer(const Py_buffer &view, bool is_shared)
        : RegionResource(view.buf, static_cast<size_t>(view.len), is_shared), view_(view) {}
    ~RegionOfBuffer() override { PyBuffer_Release(&view_); }

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(view_.obj);
        return 0;
    }

  private:
    Py_buffer view_;
};

int traverse_region(PyObject *self, visitproc visit, void *arg) {
    if (const int stopped = traverse_resource(self, visit, arg))
        return stopped;
    const auto *region = owned_by<RegionOfBuffer>(self);
    return region != nullptr ? region->traverse(visit, arg) : 0;
}

PyType_Slot region_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_region)},
                              {0, nullptr}};

void shared(nb::module_ &module) {
    nb::class_<SharedResource, PageResource>(
        module, "SharedResource",
        "Pages of files, one file for each block; a forked child shares them.")
        .def(
            "descriptor_of",
            [](const SharedResource &self, uintptr_t address) {
                const int file = self.descriptor_of(reinterpret_cast<void *>(address));
                if (file < 0)
                    throw resource::Misuse("No block of the resource begins at " +
                                           std::to_string(address) + ".");
                return file;
            },
            "address"_a, "Return the open file of a block, for another process to map.");
    nb::class_<SegmentResource, SharedResource>(module, "SegmentResource",
                                                "Shared memory without a name.")
        .def(nb::init<>());
    nb::class_<FileResource, SharedResource>(module, "FileResource",
                                             "Files without a name in a folder, mapped.")
        .def(nb::init<std::filesystem::path>(), "folder"_a,
             nb::sig("def __init__(self, folder: str | os.PathLike[str]) -> None"));
}

void page_resources(nb::module_ &module) {
    nb::class_<PageResource, MemoryResource>(module, "PageResource",
                                             "Whole pages, mapped for each block.")
        .def_prop_ro("current_bytes",
                     [](const PageResource &self) { return self.statistics().current_bytes; })
        .def_prop_ro("peak_bytes", &PageResource::peak_bytes)
        .def_prop_ro("allocation_count", &PageResource::allocation_count,
                     "Allocations since the resource was made.");
    nb::class_<HostResource, PageResource>(module, "HostResource",
                                           "Zeroed private pages, huge ones where they fit.")
        .def(nb::init<>())
        .def(
            "__init__",
            [](HostResource *self, int node, bool is_filled, bool is_locked) {
                new (self) HostResource({node, is_filled, is_locked});
            },
            nb::kw_only(), "node"_a = -1, "is_filled"_a = false, "is_locked"_a = false,
            "Use pages of NUMA node `node` while it has some, -1 for any; `is_filled` backs them "
            "with\nmemory at once, `is_locked` keeps them there as far as the process may.")
        .def_prop_ro("locked_bytes", &HostResource::locked_bytes,
                     "Bytes that could be locked, of all blocks since the resource was made.");
    shared(module);
    nb::class_<RegionOfBuffer, MemoryResource>(
        module, "RegionResource", nb::type_slots(region_slots),
        "One block at a time in a writable buffer of the caller.")
        .def(
            "__init__",
            [](RegionOfBuffer *self, nb::object buffer, bool is_shared) {
                Py_buffer view;
                if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_WRITABLE) != 0)
                    throw nb::python_error();
                new (self) RegionOfBuffer(view, is_shared);
            },
            "buffer"_a, nb::kw_only(), "is_shared"_a = false,
            "Use a buffer; `is_shared` tells that a fork does not copy its memory.");
}

void bump(nb::module_ &module) {
    nb::class_<BumpResource, MemoryResource>(
        module, "BumpResource",
        "Blocks that are freed together: a pointer that moves forward, one for each processor.")
        .def(
            "__init__",
            [](BumpResource *self, Upstream upstream, Amount size, Count parts, Upstream control) {
                new (self) BumpResource(std::move(upstream), at_least(1, "size_bytes", size),
                                        at_least(0, "part_count", parts), std::move(control));
            },
            "upstream"_a, "size_bytes"_a, "part_count"_a = 0, "control"_a.none() = nb::none(),
            "Take `size_bytes` of `upstream`, in `part_count` parts, 0 for one per "
            "processor.\n`control` keeps the cursors, else the region itself does.")
        .def_prop_ro("capacity_bytes", &BumpResource::capacity_bytes)
        .def_prop_ro("part_count", &BumpResource::part_count)
        .def("reset", &BumpResource::reset,
             "Free every block and every mark. No thread may be allocating.")
        .def("mark", &BumpResource::mark,
             "Return a mark to `rewind` to. No thread may be allocating.")
        .def(
            "rewind",
            [](BumpResource &self, uint64_t mark) {
                if (!self.rewind(mark))
                    throw resource::Misuse("Mark " + std::to_string(mark) +
                                           " is gone: the resource was reset, or rewound to an "
                                           "earlier mark.");
            },
            "mark"_a,
            "Free every block and mark made since this mark. No thread may be allocating.");
}

void slab(nb::module_ &module) {
    nb::class_<SlabResource, MemoryResource>(module, "SlabResource",
                                             "Blocks of one size, with a bit for each.")
        .def(
            "__init__",
            [](SlabResource *self, Upstream upstream, Amount size, Amount block, Upstream control) {
                new (self) SlabResource(std::move(upstream), at_least(1, "size_bytes", size),
                                        at_least(1, "block_bytes", block), std::move(control));
            },
            "upstream"_a, "size_bytes"_a, "block_bytes"_a, "control"_a.none() = nb::none(),
            "Take `size_bytes` of `upstream`, split into blocks of `block_bytes`, a multiple of "
            "8.\n`control` keeps the bits, else the region itself does.")
        .def_prop_ro("capacity_bytes", &SlabResource::capacity_bytes)
        .def_prop_ro("block_bytes", &SlabResource::block_bytes)
        .def_prop_ro("block_count", &SlabResource::block_count)
        .def_prop_ro("alignment", &SlabResource::alignment,
                     "Largest power of two that divides the address of every block.");
}

} // namespace

void resource_kinds(nb::module_ &module) {
    module.def("current_cpu", &os::current_cpu,
               "Return the number of the processor that the calling thread runs on now.");
    page_resources(module);
    bump(module);
    slab(module);
    committed_range(module);
    page_range(module);
    composed_resources(module);
    adaptors(module);
    virtual_resources(module);
}

} // namespace tightship::bind
