#include "tightship/kernels/convolution/planes.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void plane_kernels(nb::class_<Kernel> &kernel) {
    const auto make = [](const std::array<int64_t, 3> &counts,
                         const std::array<std::array<int64_t, 2>, 6> &sizes, bool swishes,
                         const std::pair<float, float> &limits) {
        const auto &[source, target, window, steps, dilations, pads] = sizes;
        return kernels::plane_convolution({counts[0], counts[1], counts[2], source, target, window,
                                           steps, dilations, pads, swishes, limits.first,
                                           limits.second});
    };
    recorded(kernel).def_static(
        "plane_convolution", make, "counts"_a, "sizes"_a, "swishes"_a, "limits"_a,
        "Make a depthwise convolution of row-major images. Operands: source, weights, bias, "
        "target. `counts`: images, channels, results of a channel. `sizes`: source, target, "
        "kernel, strides, dilations, pads. `swishes`: whether results are a Swish; `limits` clamp "
        "results without one. Raises ValueError if 16 results read more than 4,096 elements.");
}

} // namespace tightship::bind
