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
                               "Addresses of which the front is backed with zeroed private pages.")
        .def(
            "__init__",
            [](CommittedRange *self, Count capacity) {
                new (self) CommittedRange(at_least(0, "capacity_bytes", capacity));
            },
            "capacity_bytes"_a,
            "Whole pages of addresses, none of them backed.\n\n"
            "Raises MemoryError where the system has no such addresses.")
        .def_prop_ro(
            "address",
            [](const CommittedRange &self) { return reinterpret_cast<uintptr_t>(self.start()); })
        .def_prop_ro("capacity_bytes", &CommittedRange::capacity_bytes)
        .def_prop_ro("size_bytes", &CommittedRange::size_bytes, "Those that are backed.")
        .def(
            "resize",
            [](CommittedRange &self, Count size) {
                return self.resize(at_least(0, "size_bytes", size));
            },
            "size_bytes"_a,
            "Back so many bytes, and give what is behind them back to the system; what stays "
            "keeps\n"
            "its contents. False, and nothing changed, where the system refuses.")
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
            "Give back the huge pages that lie wholly in bytes [start, stop); they are zeros when "
            "they\nare next touched. Returns how many bytes these are.")
        .def(
            "array",
            [](nb::handle_t<CommittedRange> self) {
                const auto &range = nb::cast<const CommittedRange &>(self);
                return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(range.start(),
                                                                    {range.size_bytes()}, self);
            },
            "What is backed now, as a uint8 array that keeps the range alive. Bytes of it that "
            "are\n"
            "given back later must not be touched.");
}

} // namespace tightship::bind
