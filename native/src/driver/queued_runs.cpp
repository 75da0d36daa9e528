#include "tightship/driver/queued_runs.hpp"

#include <unistd.h>
#include <utility>

namespace tightship::driver {

bool QueuedRuns::join(int64_t run, Names names, int64_t priority, RequestMetrics &metrics) {
    Place *place = nullptr;
    {
        const std::lock_guard lock(lock_);
        place = &places_[run];
    }
    place->names = std::move(names);
    place->priority = priority;
    place->metrics = &metrics;
    place->told = [this, run] {
        const std::lock_guard lock(lock_);
        come_.push_back(run);
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = write(bell_, &one, sizeof one);
    };
    return permits_.join(*place);
}

std::optional<int64_t> QueuedRuns::next() {
    const std::lock_guard lock(lock_);
    if (come_.empty())
        return {};
    const int64_t run = come_.front();
    come_.pop_front();
    return run;
}

void QueuedRuns::leave(int64_t run) {
    Place *place = nullptr;
    {
        const std::lock_guard lock(lock_);
        place = &places_.at(run);
    }
    const bool was_waiting = permits_.leave(*place);
    if (!was_waiting) {
        {
            const std::lock_guard lock(lock_);
            std::erase(come_, run);
        }
        give_back(run);
        return;
    }
    const std::lock_guard lock(lock_);
    places_.erase(run);
}

void QueuedRuns::give_back(int64_t run) {
    std::map<int64_t, Place>::node_type ended; // must outlive the call of `told` that may still run
    {
        const std::lock_guard lock(lock_);
        ended = places_.extract(run);
    }
    permits_.give_back(ended.mapped().names);
}

} // namespace tightship::driver
