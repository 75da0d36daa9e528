/// The best order of an interval of steps, whatever comes before and after it.
#pragma once

#include "tightship/flow/least_order.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace tightship::flow {

/// The most steps of an interval: a set of them is a word.
inline constexpr std::size_t kIntervalMax = 64;

/// Steps `[start, stop)` of an order, what is live around them, and what they wait for.
struct Interval {
    const Traffic &traffic;
    std::span<const std::int64_t> order; // of all steps
    std::size_t start, stop;
    std::span<const std::vector<Step>> before; // of each step: those it waits for
};

/// What was found within the effort.
struct IntervalOrder {
    std::vector<std::int64_t> order; // of the steps of the interval; empty where there is none
    bool is_whole;                   // every set was looked at that could lead to a smaller peak
};

/// An order of an interval whose loads all stay below `limit`, with the smallest largest load,
/// where `live` bytes are live before it. `effort` is lowered by the number of times that a step is
/// put behind a set.
IntervalOrder best_interval(const Interval &interval, std::int64_t limit, std::int64_t live,
                            std::int64_t &effort);

} // namespace tightship::flow
