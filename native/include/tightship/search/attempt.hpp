/// Parameters, outcome and shared knowledge of one attempt of a search.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tightship/stop_flag.hpp"

namespace tightship::search {

enum class Outcome { placed, failed, stopped };

/// Experience that attempts share: how often a buffer was to blame, or a section too full.
struct Blame {
    std::vector<std::int64_t> buffer, section;
};

/// Condition under which an attempt goes on: neither stopped nor beaten by an earlier one.
struct Wanted {
    const StopFlag *stop;                  // may be null
    const std::atomic<std::int64_t> *done; // first attempt known to settle the question
    std::int64_t attempt;

    bool operator()() const {
        return *done >= attempt && !(stop && stop->load(std::memory_order_relaxed));
    }
};

} // namespace tightship::search
