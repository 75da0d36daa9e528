/// Multiplication of a tensor by a few scales, in small blocks.
#pragma once

#include "tightship/kernel.hpp"

#include <array>
#include <memory>
#include <vector>

namespace tightship::kernels {

/// Makes target = source * scale in float32. Operands: source, scales, target; `strides` in bytes
/// in this order, 0 repeats a scale.
/// REQUIRES: Along the innermost axis source and target are dense, and scales are or repeat.
std::shared_ptr<const Kernel> scale(const std::vector<int64_t> &shape,
                                    const std::array<std::vector<int64_t>, 3> &strides);

} // namespace tightship::kernels
