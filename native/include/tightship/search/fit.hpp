/// Exact search: is there a placement of the buffers within a capacity, and where?
///
/// Buffers are placed from the floor up, each where it comes to rest on those placed before. A
/// failed attempt is traced to the buffers that caused it, and decisions that did not touch them
/// are not tried again. Attempts are short and start over, with an order that puts forward what
/// was in the way.
#pragma once

#include <cstdint>
#include <vector>

#include "tightship/packing/place.hpp"
#include "tightship/search/instance.hpp"
#include "tightship/stop_flag.hpp"

namespace tightship::search {

enum class Verdict { fits, infeasible, open };

struct Limits {
    std::int64_t effort;            // pairs of buffers that all attempts may look at, roughly
    int threads = 1;                // that run attempts; any number of them gives the same answer
    const StopFlag *stop = nullptr; // once set, the answer is `open`
};

struct Answer {
    Verdict verdict = Verdict::open;
    place::Offsets offsets;             // of `fits`
    std::vector<std::int64_t> conflict; // of `infeasible`: buffers that do not fit together, rising
    std::int64_t bound = 0;             // of `infeasible`: no smaller capacity will do
    std::int64_t nodes = 0;             // decisions taken
    std::int64_t effort = 0;            // pairs of buffers looked at, roughly
};

/// With `pins`, `bound` and `conflict` are about placements that keep to them. REQUIRES: aligned
/// sizes and the capacity add up to less than 2**62; pins are disjoint and within the capacity.
Answer fit(const place::Buffers &buffers, Pins pins, std::int64_t capacity, const Limits &limits);

} // namespace tightship::search
