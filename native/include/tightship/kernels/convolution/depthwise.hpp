/// Depthwise convolutions, with the activations before and after them.
#pragma once

#include "tightship/kernel.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace tightship::kernels {

/// Distances in elements in an image with channels last, or in blocks of 16.
struct ImageStrides {
    int64_t image, row, pixel, block;
};

constexpr int64_t kDepthwiseGroup = 32; ///< channels that weights are packed by
constexpr int64_t kDepthwiseRows = 32;  ///< of a kernel, at most

struct DepthwiseShape {
    int64_t batch, channels;
    std::array<int64_t, 2> source, target;                   ///< height, width
    std::array<int64_t, 2> kernel, strides, dilations, pads; ///< pads before
    ImageStrides source_strides, target_strides;
    bool swishes_before, swishes_after; ///< x / (1 + e^-x) of the source, of the result
    float low, high;                    ///< clamp results without a Swish

    int64_t groups() const { return (channels + kDepthwiseGroup - 1) / kDepthwiseGroup; }
    int64_t taps() const { return kernel[0] * kernel[1]; }
    /// Rows and columns of the source that one row of the result reads.
    int64_t rows_reached() const { return (kernel[0] - 1) * dilations[0] + 1; }
    int64_t columns_reached() const {
        return (target[1] - 1) * strides[1] + (kernel[1] - 1) * dilations[1] + 1;
    }
};

/// Makes a depthwise convolution. Operands: source, weights, bias, target[, means], scratch.
///
/// Weights are [channels / 32][taps][32] and the bias [channels / 32][32], zeros after the last
/// channel. `means`, if present, is (batch, target height, channels): the mean over each row of the
/// result.
std::shared_ptr<const Kernel> depthwise(const DepthwiseShape &shape, bool has_means);

} // namespace tightship::kernels
