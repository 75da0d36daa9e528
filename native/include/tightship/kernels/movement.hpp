/// Kernels that move elements without looking at them.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>

namespace tightship::kernels {

/// Source, target: elements of `item_bytes` from one layout into another of the same shape;
/// strides in bytes, any sign for the source.
std::shared_ptr<const Kernel> copy(int64_t item_bytes, const Dims &shape,
                                   const Dims &source_strides, const Dims &target_strides);

} // namespace tightship::kernels
