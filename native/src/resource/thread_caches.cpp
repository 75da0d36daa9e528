#include "tightship/resource/thread_caches.hpp"

#include "tightship/os/os.hpp"

#include <thread>

namespace tightship::resource {

ThreadCaches::ThreadCaches()
    : count_(os::register_thread_barrier() ? kCacheCount : 0),
      caches_(std::make_unique<ThreadCache[]>(kCacheCount + 1)) {
    for (uint32_t index = count_; index <= kCacheCount; ++index)
        caches_[index].is_closed = 1;
}

bool ThreadCaches::close(bool all) {
    bool is_any = false;
    for (uint32_t index = 0; index < count_; ++index) {
        ThreadCache &cache = caches_[index];
        if (all || !cache.is_empty()) {
            cache.is_closed.store(1, std::memory_order_relaxed);
            is_any = true;
        }
    }
    if (!is_any)
        return false;
    os::thread_barrier();
    for (uint32_t index = 0; index < count_; ++index)
        while (caches_[index].is_closed.load(std::memory_order_relaxed) != 0 &&
               caches_[index].is_busy.load(std::memory_order_acquire) != 0)
            std::this_thread::yield();
    return true;
}

void ThreadCaches::forget() {
    for (uint32_t index = 0; index < count_; ++index) {
        caches_[index].set_depth(0);
        caches_[index].set_bits(0);
    }
}

void ThreadCaches::open() {
    for (uint32_t index = 0; index < count_; ++index)
        caches_[index].is_closed.store(0, std::memory_order_release);
}

} // namespace tightship::resource
