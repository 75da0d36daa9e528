/// Convolutions whose weights are larger than their activations.
#pragma once

#include "tightship/kernel.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace tightship::kernels {

/// Convolution over two spatial axes, channels last. A matrix product is one with a single tap.
struct ConvolutionShape {
    int64_t batch, channels, outputs;
    std::array<int64_t, 2> source, target;                   ///< height, width
    std::array<int64_t, 2> kernel, strides, dilations, pads; ///< pads before

    int64_t depth; ///< channels of a tap in a chunk; divides their number
    bool by_block; ///< whether weights are packed by block of outputs, or by chunk of depth

    int64_t rows() const { return batch * target[0] * target[1]; }
    int64_t taps() const { return kernel[0] * kernel[1]; }
    /// Returns whether every row of the product is a row of the source, so that nothing is
    /// gathered.
    bool is_product() const;
    /// Throws std::invalid_argument if the shape is invalid, or the processor lacks AVX-512.
    void check() const;
    /// Returns the bytes that a run may touch of source, weights[, bias][, addend], target.
    std::vector<Reach> reach(bool has_bias, bool has_addend) const;
};

/// Makes `clamp(convolution + bias + addend, low, high)`. Operands: source, weights[, bias][,
/// addend], target.
///
/// Weights are [outputs / 32][taps][channels][32] by block, zeros after the last output, and
/// [taps][channels / depth][outputs / 32][depth][32] by chunk. They are streamed in this order,
/// fetched ahead of their use; the target may take over the addend's bytes.
/// REQUIRES: AVX-512.
std::shared_ptr<const Kernel> streamed_convolution(const ConvolutionShape &shape, bool has_bias,
                                                   bool has_addend, float low, float high);

} // namespace tightship::kernels
