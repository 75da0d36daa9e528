#include "bind.hpp"
#include "count.hpp"

#include "tightship/resource/committed_range.hpp"

#include <nanobind/ndarray.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

using resource::CommittedRange;

void committed_range(nb::module_ &module) {
    nb::class_<CommittedRange>(module, "CommittedRange",
                               "Range of addresses whose front is backed by zeroed private pages.")
        .def(
            "__init__",
            [](CommittedRange *self, Count capacity) {
                new (self) CommittedRange(at_least(0, "capacity_bytes", capacity));
            },
            "capacity_bytes"_a,
            "Reserve whole pages of addresses, none of them backed.\n\nRaises MemoryError if the "
            "system refuses.")
        .def_prop_ro(
            "address",
            [](const CommittedRange &self) { return reinterpret_cast<uintptr_t>(self.start()); })
        .def_prop_ro("capacity_bytes", &CommittedRange::capacity_bytes)
        .def_prop_ro("size_bytes", &CommittedRange::size_bytes, "Backed bytes.")
        .def(
            "resize",
            [](CommittedRange &self, Count size) {
                return self.resize(at_least(0, "size_bytes", size));
            },
            "size_bytes"_a,
            "Back the first `size_bytes`, and give bytes after them back to the system; the "
            "others\nkeep their contents. Returns False, changing nothing, if the system refuses.")
        .def(
            "discard",
            [](CommittedRange &self, Count start, Count stop) {
                const size_t first = at_least(0, "start", start), last = at_least(0, "stop", stop);
                if (first > last || last > self.size_bytes())
                    throw resource::Misuse("Bytes [" + std::to_string(first) + ", " +
                                           std::to_string(last) + ") are not among the " +
                                           std::to_string(self.size_bytes()) + " that are backed.");
                return self.discard(first, last);
            },
            "start"_a, "stop"_a,
            "Give back the huge pages that lie wholly in bytes [start, stop); they are zeros "
            "when\nnext touched. Returns their bytes.")
        .def(
            "array",
            [](nb::handle_t<CommittedRange> self) {
                const auto &range = nb::cast<const CommittedRange &>(self);
                return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(range.start(),
                                                                    {range.size_bytes()}, self);
            },
            "Return the backed bytes as a uint8 array that keeps the range alive. Bytes that "
            "are\ngiven back later must not be touched.");
}

} // namespace tightship::bind
