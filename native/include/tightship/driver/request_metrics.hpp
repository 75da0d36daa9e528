/// Counts and durations of a model's requests.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace tightship::driver {

/// Durations of waiting for a run permit, reading inputs, running, writing outputs.
using Phases = std::array<int64_t, 4>;

/// Requests so far; durations in nanoseconds.
struct Counts {
    int64_t successes = 0;
    int64_t failures = 0;
    int64_t pending = 0; ///< requests that wait for a run permit
    int64_t fail_ns = 0; ///< duration of failed requests
    Phases phase_ns{};   ///< durations of successful requests
    int64_t last_ms = 0; ///< end of the last successful request, since 1970
};

/// Request metrics of one model. Any number of threads may add to them.
class RequestMetrics {
  public:
    Counts now() const;
    /// Counts a request while it waits for a run permit.
    void enqueue();
    void dequeue();
    /// Counts a request that has ended.
    void succeed(const Phases &phase_ns);
    void fail(int64_t duration_ns);

  private:
    mutable std::mutex lock_;
    Counts counts_;
};

} // namespace tightship::driver
