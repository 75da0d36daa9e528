/// Arguments of the loops of a depthwise convolution: plain data, because the loops are compiled
/// once for each instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/convolution/depthwise.hpp"

namespace tightship::kernels {

constexpr int64_t kLayoutBlock = 16; ///< channels that are adjacent in any layout

/// Arguments of one run; `ring` holds, for a few channels, the rows of the source that a row of the
/// result needs, with zeros beside them.
struct DepthwiseTask {
    const DepthwiseShape *shape;
    const float *source, *weights, *bias;
    float *target, *means, *ring; ///< `means` null for none
};

/// Rows of the result, of all images one after another, and groups of `kDepthwiseGroup` channels.
struct DepthwisePart {
    int64_t first_row, row_end, first_group, group_end;
};

using DepthwiseLoop = void (*)(const DepthwiseTask &task, const DepthwisePart &part);

namespace portable {
void convolve(const DepthwiseTask &task, const DepthwisePart &part);
}
namespace avx2 {
void convolve(const DepthwiseTask &task, const DepthwisePart &part);
}
namespace avx512 {
void convolve(const DepthwiseTask &task, const DepthwisePart &part);
}

} // namespace tightship::kernels
