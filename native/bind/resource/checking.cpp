#include "bind.hpp"
#include "count.hpp"
#include "gil.hpp"

#include "tightship/resource/adaptor/guard_page.hpp"
#include "tightship/resource/adaptor/guarded.hpp"
#include "tightship/resource/adaptor/tracking.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::Adaptor;
using resource::GuardedResource;
using resource::GuardPageResource;
using resource::LiveBlock;
using resource::MemoryResource;
using resource::TrackingResource;

using Upstream = std::shared_ptr<MemoryResource>;

constexpr size_t kFramesMax = 16;

/// Returns the Python frames of the calling thread, a line each, the innermost first.
std::string python_frames() {
    if (!may_take_gil())
        return {};
    const GilTaken gil;
    std::string lines;
    auto frame = nb::borrow(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
    for (size_t depth = 0; depth < kFramesMax && frame.is_valid() && !frame.is_none(); ++depth) {
        const nb::object code = frame.attr("f_code");
        const int line = PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject *>(frame.ptr()));
        lines += std::string(nb::str(code.attr("co_filename")).c_str()) + ":" +
                 std::to_string(line) + " in " + nb::str(code.attr("co_name")).c_str() + "\n";
        frame = frame.attr("f_back");
    }
    return lines;
}

void tracking(nb::module_ &module) {
    nb::class_<LiveBlock>(module, "LiveBlock", "Record of a live block.")
        .def_ro("address", &LiveBlock::start)
        .def_ro("size_bytes", &LiveBlock::size_bytes, "Requested bytes.")
        .def_ro("alignment", &LiveBlock::alignment)
        .def_ro("number", &LiveBlock::number, "Number of the allocation, counted from 1.")
        .def_ro("origin", &LiveBlock::origin,
                "Python frames of the request, a line each, the innermost first; empty if not "
                "recorded.");
    nb::class_<TrackingResource, Adaptor>(
        module, "TrackingResource",
        "Records live blocks, and the Python frames that requested them.")
        .def(
            "__init__",
            [](TrackingResource *self, Upstream upstream, bool stacks) {
                new (self) TrackingResource(std::move(upstream),
                                            stacks ? python_frames : TrackingResource::Origin{});
            },
            "upstream"_a, nb::kw_only(), "stacks"_a = false,
            "Record live blocks; with `stacks` also the innermost 16 Python frames of each.")
        .def("live", &TrackingResource::live, "Return live blocks, the oldest first.")
        .def_prop_ro("live_bytes", &TrackingResource::live_bytes);
}

void guarded(nb::module_ &module) {
    nb::class_<GuardedResource, Adaptor>(
        module, "GuardedResource",
        "Detects writes outside of blocks, or after they were freed, by canaries and a quarantine.")
        .def(
            "__init__",
            [](GuardedResource *self, Upstream upstream, Amount quarantine) {
                new (self) GuardedResource(std::move(upstream),
                                           at_least(0, "quarantine_bytes", quarantine));
            },
            "upstream"_a, nb::kw_only(), "quarantine_bytes"_a = 1 << 20,
            "Put blocks between canaries of 32 bytes; a damaged block cannot be given back. "
            "Freed\nblocks of up to `quarantine_bytes` wait before they can be allocated again.")
        .def("faults", &GuardedResource::faults,
             "Describe each damaged block, live or freed. No thread may be writing.")
        .def_prop_ro("quarantined_bytes", &GuardedResource::quarantined_bytes);
}

void guard_pages(nb::module_ &module) {
    nb::class_<GuardPageResource, Adaptor>(
        module, "GuardPageResource",
        "Stops a program at the first access outside of a block, by pages without access rights.")
        .def(
            "__init__",
            [](GuardPageResource *self, Upstream upstream, Amount quarantine) {
                new (self) GuardPageResource(std::move(upstream),
                                             at_least(0, "quarantine_bytes", quarantine));
            },
            "upstream"_a, nb::kw_only(), "quarantine_bytes"_a = 1 << 20,
            "End each block at a page without access rights, as closely as its alignment allows; "
            "a\nsignal stops a program that touches it, or one of the last `quarantine_bytes` "
            "freed.\nA block takes three pages at least.")
        .def_prop_ro("quarantined_bytes", &GuardPageResource::quarantined_bytes);
}

} // namespace

void checking_adaptors(nb::module_ &module) {
    tracking(module);
    guarded(module);
    guard_pages(module);
}

} // namespace tightship::bind
