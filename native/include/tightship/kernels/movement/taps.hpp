/// Axes resized or pooled: each position of one is made of a few that it was.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <vector>

namespace tightship::kernels {

/// One axis, of `length` elements among (before, length, after). What each of its positions
/// becomes: `indices` of what it reads and how much of each, both (taps, positions), a tap's after
/// another's. Without `weights` the largest is taken.
struct Taps {
    int64_t before, length, after, positions;
    Dims indices;
    std::vector<float> weights;
};

/// Source, target of float32: one axis after another. Books scratch for what is between two.
std::shared_ptr<const Kernel> taps(const std::vector<Taps> &axes);

} // namespace tightship::kernels
