#include "bind.hpp"
#include "gil.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "tightship/verify.hpp"

namespace tightship::bind {

namespace nb = nanobind;

void verifier(nb::module_ &module) {
    using Rows = nb::ndarray<const std::int64_t, nb::shape<4, -1>, nb::c_contig, nb::device::cpu>;
    module.def(
        "first_overlap",
        [](const Rows &rectangles) {
            const std::size_t count = rectangles.shape(1);
            const auto row = [&](std::size_t index) {
                return std::span(rectangles.data() + index * count, count);
            };
            const GilReleased release;
            return verify::first_overlap({row(0), row(1), row(2), row(3)});
        },
        nb::arg("rectangles"),
        "Find two rectangles that share a byte in a step. Rows: sizes, starts, stops, offsets.");
}

} // namespace tightship::bind
