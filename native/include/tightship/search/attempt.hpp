/// What one attempt of a search says, learns and is asked.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tightship/stop_flag.hpp"

namespace tightship::search {

enum class Outcome { placed, failed, stopped };

/// What attempts learn from each other: how often a buffer was to blame, a section too full.
struct Blame {
    std::vector<std::int64_t> buffer, section;
};

/// Whether an attempt is still wanted.
struct Wanted {
    const StopFlag *stop;                  // may be null
    const std::atomic<std::int64_t> *done; // the first attempt known to settle the matter
    std::int64_t attempt;

    bool operator()() const {
        return *done >= attempt && !(stop && stop->load(std::memory_order_relaxed));
    }
};

} // namespace tightship::search
