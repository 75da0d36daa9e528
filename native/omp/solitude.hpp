/// Periods in which a caller runs its regions alone, because its workers do not get to run.
#pragma once

#include "cpu.hpp"

namespace tightship::omp {

/// Period that begins when another process takes a worker's processor, and lasts about as long as
/// the system lets that process keep it.
class Solitude {
  public:
    void begin() { until_ = now() + kTimeSlice; }

    /// Returns whether the period lasts; reads a clock only during it.
    bool lasts() {
        if (until_ == kNever)
            return false;
        if (now() < until_)
            return true;
        until_ = kNever;
        return false;
    }

  private:
    static constexpr Nanoseconds kNever{0};
    static constexpr Nanoseconds kTimeSlice = std::chrono::milliseconds(3);

    Nanoseconds until_ = kNever;
};

} // namespace tightship::omp
