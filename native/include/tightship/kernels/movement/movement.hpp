/// Kernels that move elements without looking at them.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Source, target: elements of `item_bytes` from one layout into another of the same shape;
/// strides in bytes, any sign for the source.
std::shared_ptr<const Kernel> copy(int64_t item_bytes, const Dims &shape,
                                   const Dims &source_strides, const Dims &target_strides);

/// Part of an operand: which one of the step's, the byte of its first element, byte strides.
struct Part {
    size_t operand;
    int64_t offset_bytes;
    Dims strides;
};

/// Elements of `shape` from one part into another.
struct Move {
    Dims shape;
    Part source, target;
};

/// Operands as the moves number them. Targets of two moves do not overlap.
std::shared_ptr<const Kernel> moves(int64_t item_bytes, const std::vector<Move> &moves);

} // namespace tightship::kernels
