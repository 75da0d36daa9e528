#include "tightship/kernels/convolution/winograd.hpp"
#include "image_strides.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using Pair = std::array<int64_t, 2>;

std::shared_ptr<const Kernel>
winograd(const std::array<int64_t, 3> &counts, const std::array<Pair, 3> &sizes,
         const std::pair<Strides, Strides> &strides, const Pair &at_once, bool swishes,
         const std::pair<float, float> &limits, bool has_bias, bool has_addend, int64_t lanes) {
    const auto &[source, target, pads] = sizes;
    return kernels::winograd({counts[0], counts[1], counts[2], source, target, pads,
                              image_strides(strides.first), image_strides(strides.second),
                              at_once[0], at_once[1], swishes, limits.first, limits.second, lanes},
                             has_bias, has_addend);
}

} // namespace

void winograd_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel).def_static(
        "winograd", &winograd, "batch_channels_outputs"_a, "sizes"_a, "strides"_a, "at_once"_a,
        "swishes"_a, "limits"_a, "has_bias"_a, "has_addend"_a, "lanes"_a = 16,
        "Make a convolution of 3x3 by Winograd's algorithm. Operands: source, weights[, bias][, "
        "addend], target, scratch. `sizes`: source, target, pads before. `strides`: of source and "
        "target in elements, for image, row, pixel, 16 channels. `at_once`: most tiles, and "
        "channels "
        "of weights, that are transformed at once. `swishes`: whether results are a Swish; "
        "`limits` clamp results without one. `lanes`: most floats of a vector, for tests.");
}

} // namespace tightship::bind
