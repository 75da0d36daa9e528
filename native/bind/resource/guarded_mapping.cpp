#include "bind.hpp"
#include "count.hpp"

#include "tightship/os/guard.hpp"

#include <nanobind/ndarray.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

using os::GuardedMapping;

void guarded_mapping(nb::module_ &module) {
    nb::class_<GuardedMapping>(module, "GuardedMapping",
                               "Mapped part of a file that another process may truncate.")
        .def(
            "__init__",
            [](GuardedMapping *self, int file, Count offset, Count size) {
                new (self) GuardedMapping(file, at_least(0, "offset_bytes", offset),
                                          at_least(1, "size_bytes", size));
            },
            "file"_a, "offset_bytes"_a, "size_bytes"_a,
            "Map bytes of a file that is open to read and write, from a multiple of the page "
            "size.\n\nRaises MemoryError if the system refuses, or too many are mapped.")
        .def_prop_ro("is_lost", &GuardedMapping::is_lost,
                     "Whether bytes were touched that the file no longer has, or that the system "
                     "had no page\nfor: the whole mapping is private zeros since then.")
        .def(
            "array",
            [](nb::handle_t<GuardedMapping> self) {
                const auto &mapping = nb::cast<const GuardedMapping &>(self);
                return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(mapping.start(),
                                                                    {mapping.size_bytes()}, self);
            },
            "Return its bytes as a uint8 array that keeps them mapped.");
}

} // namespace tightship::bind
