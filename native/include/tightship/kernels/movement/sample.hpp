/// Interpolation of images at positions that an operand gives.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>

namespace tightship::kernels {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Beyond { kZeros, kBorder, kReflection };

/// Parameters of a GridSample of up to three spatial axes. Steps are in elements; positions of a
/// target are `target_position_step` apart, in the order of the grid.
struct Sampling {
    Interpolation interpolation;
    Beyond beyond;
    bool aligns_corners; ///< whether -1 and 1 are centers of the outermost elements, or edges
    int64_t batch, channels, positions;
    Dims lengths;      ///< of spatial axes
    Dims source_steps; ///< of batch, channel and spatial axes
    int64_t target_batch_step, target_channel_step, target_position_step;
};

/// Makes a GridSample of float32. Operands: source, row-major grid (batch, positions, spatial axes
/// from the last to the first) in [-1, 1], target.
std::shared_ptr<const Kernel> sample(const Sampling &sampling);

} // namespace tightship::kernels
