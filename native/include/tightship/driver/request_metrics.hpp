/// Counts and durations of a model's requests.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tightship::driver {

/// Durations of waiting for a run permit, reading inputs, running, writing outputs.
using Phases = std::array<int64_t, 4>;

/// Upper bounds of the buckets of durations, in nanoseconds: 100 us to 10 s.
inline constexpr std::array<int64_t, 16> DURATION_BOUNDS{
    100'000,       250'000,       500'000,       1'000'000,     2'500'000,   5'000'000,
    10'000'000,    25'000'000,    50'000'000,    100'000'000,   250'000'000, 500'000'000,
    1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};
/// Upper bounds of the buckets of sizes: 1 KiB to 256 MiB.
inline constexpr std::array<int64_t, 10> SIZE_BOUNDS{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18,
                                                     1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28};

/// Counts of values by buckets, each of values above the bound before; the last one has no bound.
template <size_t SIZE> struct Histogram {
    std::array<int64_t, SIZE + 1> counts{};
    int64_t sum = 0;

    void add(const std::array<int64_t, SIZE> &bounds, int64_t value) {
        const auto found = std::lower_bound(bounds.begin(), bounds.end(), value);
        counts[static_cast<size_t>(found - bounds.begin())] += 1;
        sum += value;
    }
};

/// Distributions of successful requests.
struct Histograms {
    Histogram<DURATION_BOUNDS.size()> queue;   ///< time of waiting for a run permit
    Histogram<DURATION_BOUNDS.size()> compute; ///< time of reading inputs, running, writing outputs
    Histogram<SIZE_BOUNDS.size()> received;    ///< bytes of requests
    Histogram<SIZE_BOUNDS.size()> sent;        ///< bytes of responses
};

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
    Histograms histograms() const;
    /// Counts a request while it waits for a run permit.
    void enqueue();
    void dequeue();
    /// Counts a request that has ended.
    void succeed(const Phases &phase_ns);
    void fail(int64_t duration_ns);
    /// Counts the messages of a successful request, beside `succeed`.
    void transfer(int64_t received_bytes, int64_t sent_bytes);

  private:
    mutable std::mutex lock_;
    Counts counts_;
    Histograms histograms_;
};

} // namespace tightship::driver
