/// Exact search for a placement of buffers within a capacity.
///
/// Buffers are placed from the floor up, each where it comes to rest on those placed before. A
/// failed attempt is traced to the buffers that caused it, and decisions that did not touch them
/// are not tried again. Attempts are short and start over, with an order that puts buffers to blame
/// first.
#pragma once

#include <cstdint>
#include <vector>

#include "tightship/packing/place.hpp"
#include "tightship/search/instance.hpp"
#include "tightship/stop_flag.hpp"

namespace tightship::search {

enum class Verdict { fits, infeasible, open };

struct Limits {
    std::int64_t effort;            // pairs of buffers that all attempts may visit, roughly
    int threads = 1;                // for attempts; any number gives the same answer
    const StopFlag *stop = nullptr; // once set, the answer is `open`
};

struct Answer {
    Verdict verdict = Verdict::open;
    place::Offsets offsets;             // of `fits`
    std::vector<std::int64_t> conflict; // of `infeasible`: buffers that do not fit together, rising
    std::int64_t bound = 0;             // of `infeasible`: no smaller capacity suffices
    std::int64_t nodes = 0;             // decisions made
    std::int64_t effort = 0;            // pairs of buffers visited, roughly
};

/// Searches for a placement. With `pins`, `bound` and `conflict` hold for placements that respect
/// them. REQUIRES: aligned sizes and the capacity add up to less than 2**62; pins are disjoint and
/// within the capacity.
Answer fit(const place::Buffers &buffers, Pins pins, std::int64_t capacity, const Limits &limits);

} // namespace tightship::search
