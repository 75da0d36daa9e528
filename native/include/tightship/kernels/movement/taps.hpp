/// Resizing and pooling along axes: each position is computed from a few of the source.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <vector>

namespace tightship::kernels {

/// One axis of `length` elements among (before, length, after). Each of `positions` in the result
/// reads source elements `indices` times `weights`, both of shape (taps, positions). Without
/// `weights` it is the largest of them.
struct Taps {
    int64_t before, length, after, positions;
    Dims indices;
    std::vector<float> weights;
};

/// Makes a kernel of one axis after another. Operands: source, target (float32), scratch for
/// intermediate results.
std::shared_ptr<const Kernel> taps(const std::vector<Taps> &axes);

} // namespace tightship::kernels
