/// Rotary position embedding.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <array>
#include <memory>
#include <string>

namespace tightship::kernels {

/// Rotation of float32 pairs in rows, each by its own angle. Distances are in bytes, of source,
/// cosines, sines, target.
struct Rotary {
    std::string node;                 ///< named by errors
    Dims shape;                       ///< of the axes around rows
    int64_t pairs, rest;              ///< of a row; elements after the pairs are copied
    int64_t position_count;           ///< rows of the tables; 0 if no positions are given
    std::array<Dims, 4> strides;      ///< around rows; of the tables or, if given, of positions
    std::array<int64_t, 4> steps;     ///< from the first element of a pair to the next pair's
    std::array<int64_t, 4> partners;  ///< from the first element of a pair to its second
    int64_t source_step, target_step; ///< from one element of a row to the next
};

/// Makes a rotation. Operands: source, cosines, sines, positions (int64) if `position_count`,
/// target, which may be the source: `a' = a cos(a) - b sin(a)`, `b' = b cos(b) + a sin(b)`, with
/// table entries at the positions of `a` and `b`. With positions, tables are dense rows of `pairs`.
std::shared_ptr<const Kernel> rotary(const Rotary &rotary);

} // namespace tightship::kernels
