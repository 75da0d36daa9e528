/// Rotary position embedding.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <array>
#include <memory>

namespace tightship::kernels {

/// Source, cosine, sine, target, of float32: each pair of elements is turned by an angle.
///
/// `shape` counts pairs; `strides` lead from the first element of one pair to that of the next,
/// and `partners` from the first element of a pair to its second, in bytes, by operand:
/// `a' = a cos(a) - b sin(a)`, `b' = b cos(b) + a sin(b)`, tables read where `a` and `b` are.
std::shared_ptr<const Kernel> rotary(const Dims &shape, const std::array<Dims, 4> &strides,
                                     const std::array<int64_t, 4> &partners);

} // namespace tightship::kernels
