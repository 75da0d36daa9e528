/// When a caller keeps its regions to itself, because its workers do not get to run.
#pragma once

#include "cpu.hpp"

#include <algorithm>

namespace tightship::omp {

/// Begins with a stall and lasts a while; twice as long each time that its end is soon followed
/// by another stall.
class Solitude {
  public:
    /// Costs a look at a clock only while alone.
    bool lasts() {
        if (until_ == kNever)
            return false;
        const Nanoseconds time = now();
        if (time < until_)
            return true;
        until_ = kNever;
        ended_ = time;
        return false;
    }

    void begin() {
        const Nanoseconds time = now();
        const bool is_again = time - ended_ < 4 * length_;
        length_ = is_again ? std::min(2 * length_, kLongest) : kShortest;
        until_ = time + length_;
    }

  private:
    static constexpr Nanoseconds kNever{0};
    static constexpr Nanoseconds kShortest = std::chrono::milliseconds(2);
    static constexpr Nanoseconds kLongest = std::chrono::milliseconds(64);

    Nanoseconds until_ = kNever;
    Nanoseconds ended_{};
    Nanoseconds length_ = kShortest;
};

} // namespace tightship::omp
