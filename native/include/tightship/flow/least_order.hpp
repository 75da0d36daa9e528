/// Orders of a program's steps that have fewer bytes live at once.
#pragma once

#include "tightship/flow/ancestors.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace tightship::flow {

/// Bytes that steps allocate and free. A cell lives from the first step that touches it to the
/// last. REQUIRES: a step touches a cell once, and the step that touches it first comes before the
/// others.
struct Traffic {
    std::span<const std::int64_t> size;       // of each cell
    std::span<const std::int64_t> kept;       // not 0: lives to the end
    std::span<const std::int64_t> touch_stop; // of each step: where its cells in `touch` end
    std::span<const std::int64_t> touch;
    std::span<const std::int64_t> scratch;   // of each step
    std::span<const std::int64_t> over_stop; // of each step: where its pairs of cells end
    std::span<const std::int64_t> over_new;  // may be written over
    std::span<const std::int64_t> over_old;  // over this, if it is as large and dies here

    std::size_t steps() const { return touch_stop.size(); }
};

/// Order of steps, and its peak in bytes.
struct LeastOrder {
    std::vector<std::int64_t> order;
    std::int64_t peak;
    bool is_least; // no order has a smaller peak
};

/// Returns the peak, in bytes, of steps that run in `order`.
std::int64_t peak_of(const Traffic &traffic, std::span<const std::int64_t> order);

/// Returns an order with a peak no larger than that of 0, 1, 2, ... A step that all others come
/// before or after divides the steps into parts. In a part of at most 64 steps, every set of them
/// is searched; in larger parts, intervals of the best order found so far, around its peaks.
/// Searches at most `effort` sets.
LeastOrder least_order(const Traffic &traffic, const Edges &edges, std::int64_t effort);

} // namespace tightship::flow
