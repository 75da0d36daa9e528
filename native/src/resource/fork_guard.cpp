#include "tightship/resource/fork_guard.hpp"

#include <algorithm>
#include <mutex>
#include <pthread.h>
#include <vector>

namespace tightship::resource {

namespace {

/// List of guards, never destroyed: a resource may outlive static objects when the process ends.
struct Guards {
    std::mutex mutex;
    std::vector<Forkable *> every;
};

Guards &guards() {
    static Guards *const made = [] {
        auto *held = new Guards;
        pthread_atfork(
            [] {
                guards().mutex.lock();
                for (Forkable *each : guards().every)
                    each->before_fork();
            },
            [] {
                for (Forkable *each : guards().every)
                    each->after_fork(false);
                guards().mutex.unlock();
            },
            [] {
                for (Forkable *each : guards().every)
                    each->after_fork(true);
                guards().mutex.unlock();
            });
        return held;
    }();
    return *made;
}

} // namespace

ForkGuard::ForkGuard(Forkable &guarded) : guarded_(guarded) {
    const std::lock_guard lock(guards().mutex);
    guards().every.push_back(&guarded);
}

ForkGuard::~ForkGuard() {
    const std::lock_guard lock(guards().mutex);
    std::erase(guards().every, &guarded_);
}

} // namespace tightship::resource
