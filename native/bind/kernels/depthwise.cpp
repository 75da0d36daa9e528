#include "tightship/kernels/convolution/depthwise.hpp"
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

std::shared_ptr<const Kernel> depthwise(const Pair &counts, const std::array<Pair, 6> &sizes,
                                        const std::pair<Strides, Strides> &strides,
                                        const std::pair<bool, bool> &swishes,
                                        const std::pair<float, float> &limits, bool has_means) {
    const auto &[source, target, kernel, steps, dilations, pads] = sizes;
    return kernels::depthwise({counts[0], counts[1], source, target, kernel, steps, dilations, pads,
                               image_strides(strides.first), image_strides(strides.second),
                               swishes.first, swishes.second, limits.first, limits.second},
                              has_means);
}

} // namespace

void depthwise_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel).def_static(
        "depthwise", &depthwise, "batch_channels"_a, "sizes"_a, "strides"_a, "swishes"_a,
        "limits"_a, "has_means"_a,
        "Make a depthwise convolution. Operands: source, weights, bias, target[, means], scratch. "
        "`sizes`: source, target, kernel, strides, dilations, pads. `strides`: of source and "
        "target in elements, for image, row, pixel, 16 channels. `swishes`: whether a Swish comes "
        "before and after; `limits` clamp results without one.");
}

} // namespace tightship::bind
