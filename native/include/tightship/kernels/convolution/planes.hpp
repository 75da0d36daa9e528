/// Depthwise convolutions of row-major images, one plane at a time.
#pragma once

#include "tightship/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

namespace tightship::kernels {

struct PlaneShape {
    int64_t batch, channels, multiplier;                     ///< results of each channel
    std::array<int64_t, 2> source, target;                   ///< height, width
    std::array<int64_t, 2> kernel, strides, dilations, pads; ///< pads before
    bool swishes;                                            ///< x / (1 + e^-x) of the result
    float low, high;                                         ///< clamp results without a Swish

    int64_t taps() const { return kernel[0] * kernel[1]; }
    /// Elements of the source along an axis that `count` results read.
    int64_t reached(int axis, int64_t count) const {
        return (count - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
    }
    /// Pixels of a row of the source with padding before, and with what the last results read.
    int64_t padded_width() const { return std::max(pads[1] + source[1], reached(1, target[1])); }
};

/// Makes a depthwise convolution of row-major images. Operands: source, weights, bias, target.
///
/// The source is (batch, channels, height, width), the weights (channels * multiplier, 1, height,
/// width), the bias has an element for each result. Planes are cut into tiles of `kPlaneFloats`,
/// which are copied onto the stack; throws std::invalid_argument if 16 results need more.
std::shared_ptr<const Kernel> plane_convolution(const PlaneShape &shape);

} // namespace tightship::kernels
