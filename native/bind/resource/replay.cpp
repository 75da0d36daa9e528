#include "bind.hpp"
#include "count.hpp"
#include "gil.hpp"

#include "tightship/resource/malloc.hpp"
#include "tightship/resource/replay.hpp"

#include <algorithm>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::MallocResource;
using resource::MemoryResource;
using resource::Replayed;

using Column = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Replayed replay(MemoryResource &resource, Column slots, Column sizes, Count parts) {
    const std::span places(slots.data(), slots.size());
    const std::span bytes(sizes.data(), sizes.size());
    if (bytes.size() != places.size())
        throw nb::value_error("a size is missing, or of no event");
    int64_t last = -1;
    for (const int64_t slot : places)
        last = std::max(last, slot < 0 ? ~slot : slot);
    const size_t part_count = at_least(0, "part_count", parts);
    const GilReleased release;
    return resource::replay(resource, places, bytes, static_cast<size_t>(last + 1), part_count);
}

} // namespace

void replaying(nb::module_ &module) {
    nb::class_<Replayed>(module, "Replayed", "Result of replaying a recorded sequence.")
        .def_ro("peak_live_bytes", &Replayed::peak_live_bytes,
                "Largest sum of requested bytes of live blocks.")
        .def_ro("peak_held_bytes", &Replayed::peak_held_bytes,
                "Most bytes that the resource had touched; 0 if not measured.")
        .def_ro("live_bytes", &Replayed::live_bytes, "Maximum in each part of the sequence.")
        .def_ro("held_bytes", &Replayed::held_bytes, "Maximum in each part of the sequence.")
        .def_ro("refused_count", &Replayed::refused_count)
        .def_ro("duration_ns", &Replayed::duration_ns, "Processor time of the thread.");
    module.def("replay", &replay, "resource"_a, "slots"_a, "sizes"_a, nb::kw_only(), "part_count"_a,
               "Allocate `sizes[i]` bytes into slot `slots[i]`, or free the block of slot "
               "`~slots[i]`.\nA slot must be free when a block is put into it. Held bytes are "
               "measured unless\n`part_count` is 0.");
    nb::class_<MallocResource, MemoryResource>(
        module, "MallocResource",
        "The C library's allocator, for comparison; it does not check freed blocks.")
        .def(nb::init<>());
}

} // namespace tightship::bind
