/// How many requests a model had, and how long they took.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace tightship::driver {

/// Waiting for a turn, reading inputs, running, writing outputs.
using Phases = std::array<int64_t, 4>;

/// Requests so far; times in nanoseconds.
struct Counts {
    int64_t successes = 0;
    int64_t failures = 0;
    int64_t pending = 0; ///< waiting for a turn
    int64_t fail_ns = 0; ///< of those that failed
    Phases phase_ns{};   ///< of those that ended well
    int64_t last_ms = 0; ///< when the last one that ended well did, since 1970
};

/// Counts of one model. Any number of threads may add to them.
class RequestMetrics {
  public:
    Counts now() const;
    /// A request waits for a turn from now on, and no more.
    void enqueue();
    void dequeue();
    /// A request has ended.
    void succeed(const Phases &phase_ns);
    void fail(int64_t duration_ns);

  private:
    mutable std::mutex lock_;
    Counts counts_;
};

} // namespace tightship::driver
