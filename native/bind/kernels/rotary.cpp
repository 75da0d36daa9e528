#include "tightship/kernels/attention/rotary.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using Distances = std::array<int64_t, 4>;

std::shared_ptr<const Kernel> rotary(const std::string &node, const kernels::Dims &shape,
                                     const std::array<int64_t, 3> &sizes,
                                     const std::array<kernels::Dims, 4> &strides,
                                     const std::tuple<Distances, Distances, Distances> &along) {
    const auto &[items, steps, partners] = along;
    return kernels::rotary({node, shape, sizes[0], sizes[1], sizes[2], strides, steps, partners,
                            items.front(), items.back()});
}

} // namespace

void rotary_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel).def_static(
        "rotary", &rotary, "node"_a, "shape"_a, "sizes"_a, "strides"_a, "along"_a,
        "Make a rotation of pairs by angles. Operands: source, cosines, sines[, positions], "
        "target, of float32. `sizes`: pairs of a row, elements after them, rows of the tables or "
        "0. `strides` around rows; `along` a row: from element to element, pair to pair, within a "
        "pair. In bytes.");
}

} // namespace tightship::bind
