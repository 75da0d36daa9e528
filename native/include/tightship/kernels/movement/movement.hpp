/// Kernels that copy elements whatever their type.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Makes a copy of elements of `item_bytes` to another layout of the same shape. Operands: source,
/// target; strides in bytes, of any sign for the source.
std::shared_ptr<const Kernel> copy(int64_t item_bytes, const Dims &shape,
                                   const Dims &source_strides, const Dims &target_strides);

/// Part of an operand: the operand's index, byte of the first element, byte strides.
struct Part {
    size_t operand;
    int64_t offset_bytes;
    Dims strides;
};

/// Copy of elements of `shape` from one part to another.
struct Move {
    Dims shape;
    Part source, target;
};

/// Makes several copies, whose targets do not overlap. Moves give the indices of operands.
std::shared_ptr<const Kernel> moves(int64_t item_bytes, const std::vector<Move> &moves);

} // namespace tightship::kernels
