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
}

void RequestMetrics::fail(int64_t duration_ns) {
    const std::lock_guard lock(lock_);
    counts_.failures += 1;
    counts_.fail_ns += duration_ns;
}

} // namespace tightship::driver
