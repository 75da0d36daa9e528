/// Best order of an interval of steps, whatever comes before and after the interval.
#pragma once

#include "tightship/flow/least_order.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace tightship::flow {

/// Largest number of steps in an interval, so that a set of them fits a word.
inline constexpr std::size_t kIntervalMax = 64;

/// Steps `[start, stop)` of an order, the bytes live around them, and the steps they wait for.
struct Interval {
    const Traffic &traffic;
    std::span<const std::int64_t> order; // of all steps
    std::size_t start, stop;
    std::span<const std::vector<Step>> before; // of each step: the steps it waits for
};

/// Result of a search within the effort allowed.
struct IntervalOrder {
    std::vector<std::int64_t> order; // of the steps of the interval; empty if none was found
    bool is_whole;                   // every set that could lead to a smaller peak was searched
};

/// Returns an order of an interval whose live bytes all stay below `limit`, with the smallest peak,
/// given that `live` bytes are live before it. Lowers `effort` by the number of times that a step
/// is appended to a set.
IntervalOrder best_interval(const Interval &interval, std::int64_t limit, std::int64_t live,
                            std::int64_t &effort);

} // namespace tightship::flow
