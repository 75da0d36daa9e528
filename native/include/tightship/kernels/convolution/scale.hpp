/// Multiplication of a tensor by a few scales, in small blocks.
#pragma once

#include "tightship/kernel.hpp"

#include <array>
#include <memory>
#include <vector>

namespace tightship::kernels {

/// Source, scales, target: target = source * scale, float32. `strides` are those of the three, in
/// bytes; 0 repeats a scale.
/// REQUIRES: Along the innermost axis, source and target lie together, and scales do or repeat.
std::shared_ptr<const Kernel> scale(const std::vector<int64_t> &shape,
                                    const std::array<std::vector<int64_t>, 3> &strides);

} // namespace tightship::kernels
