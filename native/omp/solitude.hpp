/// When a caller keeps its regions to itself, because its workers do not get to run.
#pragma once

#include "cpu.hpp"

namespace tightship::omp {

/// Begins when somebody else has a worker's processor, and lasts about as long as the system
/// lets them keep it.
class Solitude {
  public:
    void begin() { until_ = now() + kTimeSlice; }

    /// Costs a look at a clock only while alone.
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
