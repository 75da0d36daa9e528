#include "bind.hpp"

#include "tightship/resource/replay.hpp"

#include <algorithm>
#include <nanobind/ndarray.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::MemoryResource;
using resource::Replayed;

using Column = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Replayed replay(MemoryResource &resource, Column slots, Column sizes, bool looks) {
    const std::span places(slots.data(), slots.size());
    const std::span bytes(sizes.data(), sizes.size());
    if (bytes.size() != places.size())
        throw nb::value_error("a size is missing, or of no event");
    int64_t last = -1;
    for (const int64_t slot : places)
        last = std::max(last, slot < 0 ? ~slot : slot);
    const nb::gil_scoped_release release;
    return resource::replay(resource, places, bytes, static_cast<size_t>(last + 1), looks);
}

} // namespace

void replaying(nb::module_ &module) {
    nb::class_<Replayed>(module, "Replayed", "What a resource did with a recorded sequence.")
        .def_ro("peak_live_bytes", &Replayed::peak_live_bytes, "As they were asked for.")
        .def_ro("peak_held_bytes", &Replayed::peak_held_bytes,
                "What the resource had touched at most; 0 where nobody looked.")
        .def_ro("refused_count", &Replayed::refused_count)
        .def_ro("duration_ns", &Replayed::duration_ns, "Processor time of the thread.");
    module.def("replay", &replay, "resource"_a, "slots"_a, "sizes"_a, nb::kw_only(), "looks"_a,
               "Allocates `sizes[i]` bytes into slot `slots[i]`, or gives back what slot\n"
               "`~slots[i]` has. A slot must be free when something comes to it.");
}

} // namespace tightship::bind
