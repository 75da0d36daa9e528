/// Images read between their elements, at places that an operand gives.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>

namespace tightship::kernels {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Beyond { kZeros, kBorder, kReflection };

/// Up to three spatial axes. Steps are in elements; a target's positions lie one after another,
/// `target_position_step` apart, in the order of the grid.
struct Sampling {
    Interpolation interpolation;
    Beyond beyond;
    bool aligns_corners; ///< -1 and 1 are the middles of the outermost elements, not their edges
    int64_t batch, channels, positions;
    Dims lengths;      ///< of spatial axes
    Dims source_steps; ///< of batch, channel and spatial axes
    int64_t target_batch_step, target_channel_step, target_position_step;
};

/// Source, row-major grid (batch, positions, spatial axes from the last to the first, in [-1, 1]),
/// target; all float32.
std::shared_ptr<const Kernel> sample(const Sampling &sampling);

} // namespace tightship::kernels
