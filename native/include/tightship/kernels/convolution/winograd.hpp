/// Convolutions with windows of 3x3 by Winograd's algorithm F(4x4, 3x3).
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/convolution/depthwise.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace tightship::kernels {

constexpr int64_t kWinogradPacked = 16; ///< outputs that weights are packed by

/// Convolution with a window of 3x3 that moves by one pixel.
struct WinogradShape {
    int64_t batch, channels, outputs;            ///< multiples of 16
    std::array<int64_t, 2> source, target, pads; ///< height, width; pads before, 0 to 2
    ImageStrides source_strides, target_strides;
    int64_t tiles_at_once; ///< at most, with less scratch the fewer there are
    int64_t depth;         ///< channels whose weights are transformed at once
    bool swishes;          ///< whether results are x / (1 + e^-x)
    float low, high;       ///< clamp results without a Swish
    int64_t lanes;         ///< floats of a vector, at most
};

/// Makes `clamp(convolution + bias + addend, low, high)`, or a Swish of the sum, in a quarter of
/// the multiplications. Operands: source, weights[, bias][, addend], target, scratch.
///
/// Weights are [outputs / 16][taps][channels][16]; each run transforms them, for some tens of tiles
/// of 4x4 results at once, so that no second form of them is kept. The addend lies as the target,
/// which may take over its bytes. Sums differ from a direct convolution's by rounding: their error
/// is some five times as large. A NaN or an infinity of the source reaches all results of its tile.
std::shared_ptr<const Kernel> winograd(const WinogradShape &shape, bool has_bias, bool has_addend);

} // namespace tightship::kernels
