#include "tightship/driver/request_metrics.hpp"

#include <chrono>

namespace tightship::driver {

namespace {

int64_t now_ms() {
    using std::chrono::system_clock;
    const auto since = system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

} // namespace

Counts RequestMetrics::now() const {
    const std::lock_guard lock(lock_);
    return counts_;
}

Histograms RequestMetrics::histograms() const {
    const std::lock_guard lock(lock_);
    return histograms_;
}

void RequestMetrics::transfer(int64_t received_bytes, int64_t sent_bytes) {
    const std::lock_guard lock(lock_);
    histograms_.received.add(SIZE_BOUNDS, received_bytes);
    histograms_.sent.add(SIZE_BOUNDS, sent_bytes);
}

void RequestMetrics::enqueue() {
    const std::lock_guard lock(lock_);
    counts_.pending += 1;
}

void RequestMetrics::dequeue() {
    const std::lock_guard lock(lock_);
    counts_.pending -= 1;
}

void RequestMetrics::succeed(const Phases &phase_ns) {
    const int64_t ended_ms = now_ms();
    const std::lock_guard lock(lock_);
    counts_.successes += 1;
    for (size_t phase = 0; phase < phase_ns.size(); ++phase)
        counts_.phase_ns[phase] += phase_ns[phase];
    counts_.last_ms = ended_ms;
    histograms_.queue.add(DURATION_BOUNDS, phase_ns[0]);
    histograms_.compute.add(DURATION_BOUNDS, phase_ns[1] + phase_ns[2] + phase_ns[3]);
}

void RequestMetrics::fail(int64_t duration_ns) {
    const std::lock_guard lock(lock_);
    counts_.failures += 1;
    counts_.fail_ns += duration_ns;
}

} // namespace tightship::driver
